"""Reads a checkpoint's config.json field by field. Knows no family and no torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar, final

import msgspec

from tokenwire.core.errors import ConfigError

__all__ = ("Document",)

T = TypeVar("T")


@final
class Document:
    """A JSON object whose fields are asked for by type; an absent field is one that is null."""

    def __init__(self, fields: Mapping[str, object], where: str) -> None:
        self.fields = fields
        self.where = where
        """For errors: the file's path, and the field within it."""

    def has(self, name: str) -> bool:
        return self.fields.get(name) is not None

    def get(self, name: str, kind: type[T], default: T) -> T:
        value = self.fields.get(name)
        return default if value is None else self._convert(name, value, kind)

    def need(self, name: str, kind: type[T]) -> T:
        value = self.fields.get(name)
        if value is None:
            raise ConfigError(f"{self.where}: wanted the field {name!r}, and it is not there")
        return self._convert(name, value, kind)

    def size(self, name: str, default: int | None = None, *, least: int = 1) -> int:
        """A whole number of at least `least`; `default` None: the field has to be there."""
        found = self.need(name, int) if default is None else self.get(name, int, default)
        if found < least:
            raise ConfigError(f"{self.where}: {name}: wanted at least {least}, got {found}")
        return found

    def inner(self, name: str) -> Document | None:
        """An object in a field; None where it is absent."""
        value = self.fields.get(name)
        if value is None:
            return None
        return Document(self._convert(name, value, dict[str, object]), f"{self.where}: {name}")

    def ids(self, name: str) -> tuple[int, ...]:
        """One id or a list of them."""
        value = self.fields.get(name)
        if value is None:
            return ()
        return self._convert(name, value if isinstance(value, list) else [value], tuple[int, ...])

    def _convert(self, name: str, value: object, kind: type[T]) -> T:
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            raise ConfigError(f"{self.where}: {name}: {error} (the value is {value!r})") from error
