"""The token-ID interface as JSON Schema (2020-12), made from the Structs themselves."""

from __future__ import annotations

import json
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import FieldInfo, fields

from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import (
    Abort,
    BlockRemoved,
    BlockSnapshot,
    BlockStored,
    Credit,
    EngineCard,
    EngineStatus,
    Link,
    OpenEnum,
    Release,
    TokenDelta,
    TokenJob,
)

__all__ = ("MESSAGES", "json_schema")

MESSAGES = (
    EngineCard,
    EngineStatus,
    TokenJob,
    TokenDelta,
    Link,
    Abort,
    Credit,
    Release,
    BlockStored,
    BlockRemoved,
    BlockSnapshot,
)
"""Everything that is a frame of its own."""

UINT32 = Annotated[int, Meta(ge=0, le=2**32 - 1)]


def json_schema() -> dict[str, Any]:
    """The whole interface; `docs/token_interface.schema.json` is this."""
    twins: dict[type, Any] = {}
    kinds = [_twin(kind, twins) for kind in MESSAGES]
    _, components = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Tokenwire token-ID interface, version 1",
        "$defs": components,
    }


def _twin(kind: type[Struct], twins: dict[type, Any]) -> Any:
    """The Struct with ids as lists and open enums as texts, which msgspec can describe."""
    if kind not in twins:
        hints = get_type_hints(kind)
        config = kind.__struct_config__
        described: list[tuple[str, Any] | tuple[str, Any, Any]] = []
        for field in fields(kind):
            wire = _wire(hints[field.name], twins)
            if field.required:
                described.append((field.name, wire))
            else:
                described.append((field.name, wire, _default(field)))
        twins[kind] = msgspec.defstruct(
            kind.__name__,
            described,
            frozen=True,
            tag=config.tag,
            tag_field=config.tag_field,
            namespace={"__doc__": kind.__doc__},
            kw_only=True,
        )
    return twins[kind]


def _wire(hint: Any, twins: dict[type, Any]) -> Any:
    if hint is TokenIds:
        return list[UINT32]
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return Union[tuple(_wire(one, twins) for one in arguments)]  # noqa: UP007
    if origin is tuple and arguments[-1] is Ellipsis:
        return list[_wire(arguments[0], twins)]  # type: ignore[misc]
    if origin is not None and origin not in (list, dict) and not _is_literal(hint):
        parts = tuple(_wire(one, twins) for one in arguments)
        return hint if hint is NoneType else origin[parts]  # pyright: ignore[reportInvalidTypeArguments]
    if isinstance(hint, type) and issubclass(hint, Struct):
        return _twin(hint, twins)
    if isinstance(hint, type) and issubclass(hint, OpenEnum):
        known = ", ".join(member.value for member in hint)
        return Annotated[str, Meta(description=f"{known}; readers keep a name they do not know")]
    return hint


def _is_literal(hint: Any) -> bool:
    return getattr(get_origin(hint), "__name__", "") == "Literal" or "Literal" in repr(hint)


def _default(field: FieldInfo) -> Any:
    value = field.default
    if isinstance(value, TokenIds):
        return []
    if isinstance(value, OpenEnum):
        return value.value
    if value is msgspec.NODEFAULT or isinstance(value, Struct):
        return msgspec.field(default_factory=dict)  # Why: not required, and no text to show.
    return value


def main() -> None:
    """`python -m tokenwire.core.token_schema` prints the schema."""
    print(json.dumps(json_schema(), indent=2))


if __name__ == "__main__":
    main()
