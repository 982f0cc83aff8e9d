"""A checkpoint's `response_template`, as Hugging Face's transformers define version 1 of it.

Strict: an unknown key is refused, for it might change what an answer means. Reads no answer.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from tokenwire.core.errors import ConfigError
from tokenwire.plugins.dialects.generic.anchor import Anchor

__all__ = ("Content", "Field", "ResponseTemplate", "read_template")

Content: TypeAlias = Literal[
    "text", "int", "float", "bool", "json", "xml-inline", "kv-lines", "python-call-list"
]


class _Anchored(Struct, frozen=True, forbid_unknown_fields=True):
    open: str | list[str] | None = None
    open_pattern: str | None = None
    close: str | list[str] | None = None
    close_pattern: str | None = None
    content: Content = "text"
    content_args: dict[str, Any] = {}
    repeats: bool = False
    join: str | None = None
    optional: bool = True
    transform: Any = None
    transform_each: bool = False


class _Spec(Struct, frozen=True, forbid_unknown_fields=True):
    fields: dict[str, _Anchored]
    version: Literal[1] = 1
    defaults: dict[str, Any] = {}
    start_anchor: str | list[str] | None = None
    start_anchor_pattern: str | None = None


class Field(Struct, frozen=True):
    """A region of an answer: what stands between two anchors."""

    name: str
    open: Anchor | None
    """None: what stands outside of all other regions."""
    close: Anchor | None
    """None: it goes on to the end of the answer."""
    content: Content
    args: dict[str, Any]
    transform: Any
    is_each: bool
    """Whether `transform` is of the elements of a list."""


class ResponseTemplate(Struct, frozen=True):
    fields: tuple[Field, ...]
    start: Anchor
    """The beginning of an assistant's turn."""


def read_template(value: object) -> ResponseTemplate:
    """Of decoded JSON. Raises ConfigError for what is none, or cannot be read."""
    try:
        spec = msgspec.convert(value, _Spec)
    except msgspec.ValidationError as error:
        raise ConfigError(f"response_template: {error}") from error
    fields = tuple(_field(name, field) for name, field in spec.fields.items())
    if not fields:
        raise ConfigError("response_template: wanted fields, got none")
    if sum(field.open is None for field in fields) > 1:
        raise ConfigError("response_template: more than one field has no open anchor")
    start = _anchor("start_anchor", spec.start_anchor, spec.start_anchor_pattern)
    if start is None:
        raise ConfigError("response_template: wanted start_anchor or start_anchor_pattern")
    return ResponseTemplate(fields, start)


def _field(name: str, field: _Anchored) -> Field:
    return Field(
        name,
        _anchor(f"{name}.open", field.open, field.open_pattern),
        _anchor(f"{name}.close", field.close, field.close_pattern),
        field.content,
        field.content_args,
        field.transform,
        field.transform_each,
    )


def _anchor(where: str, literal: str | list[str] | None, pattern: str | None) -> Anchor | None:
    if literal is not None and pattern is not None:
        raise ConfigError(f"response_template: {where} has a text and a pattern; wanted one")
    if pattern is not None:
        return Anchor.of_pattern(pattern)
    if literal is None:
        return None
    literals = [literal] if isinstance(literal, str) else literal
    if not literals or "" in literals:
        raise ConfigError(f"response_template: {where} wanted texts, got an empty one")
    return Anchor.of_texts(literals)
