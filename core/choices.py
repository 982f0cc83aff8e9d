"""Which values a type allows at a place inside it, for errors that name what was wanted. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import inspect

__all__ = ("choices",)

STEP: Final = re.compile(r"\.([^.\[]+)|\[[^\]]*\]")


def choices(kind: type, path: str) -> tuple[str, ...]:
    """The literals (and tags) at `path`, which is as msgspec writes it behind `$`: ".a[0].b",
    "[...]" for any key of a dict. () where anything of a type may stand."""
    types = list(_each([inspect.type_info(kind)]))
    tags: list[object] = []
    for step in STEP.finditer(path):
        name = step.group(1)
        tags = (
            [] if name is None else [each.tag for each in _structs(types) if each.tag_field == name]
        )
        types = list(_each(_inner(types, name)))
    literals = [each for each in types if isinstance(each, inspect.LiteralType)]
    found = [*tags, *(value for literal in literals for value in literal.values)]
    return tuple(dict.fromkeys(map(str, found)))


def _each(types: Iterable[inspect.Type]) -> Iterator[inspect.Type]:
    """Unions taken apart."""
    for each in types:
        if isinstance(each, inspect.UnionType):
            yield from _each(each.types)
        else:
            yield each


def _structs(types: Iterable[inspect.Type]) -> Iterator[inspect.StructType]:
    return (each for each in types if isinstance(each, inspect.StructType))


def _inner(types: Iterable[inspect.Type], name: str | None) -> Iterator[inspect.Type]:
    """Of a field `name`, or (None) of what is in a list or a dict."""
    for each in types:
        match each:
            case inspect.StructType(fields=fields) if name is not None:
                yield from (field.type for field in fields if field.encode_name == name)
            case inspect.DictType(value_type=inner) if name is None:
                yield inner
            case inspect.ListType(item_type=inner) | inspect.VarTupleType(item_type=inner):
                if name is None:
                    yield inner
