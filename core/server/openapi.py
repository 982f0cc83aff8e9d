"""The OpenAPI 3.1 description: the route table's paths and the admin ones. Knows no server.

Bodies are described by the Structs that routes name, so that it says what is really read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TypeAlias

import msgspec

from tokenwire.core import __version__
from tokenwire.core.routes import RouteTable
from tokenwire.core.wire import Route

__all__ = ("describe",)

Schema: TypeAlias = Mapping[str, object]

PARAMETER = re.compile(r"\{([^}]+)\}")
ERROR_SCHEMA = {
    "type": "object",
    "properties": {"error": {"type": "object"}},
    "required": ["error"],
}
ANY_ERROR: Schema = {"$ref": "#/components/schemas/Error"}
JSON = "application/json"
ANY_OBJECT: Schema = {"type": "object"}
SERVER = "server"


def describe(table: RouteTable, admin: Iterable[Route]) -> dict[str, object]:
    """The whole document, as JSON-able builtins."""
    tagged = [(codec.name, route) for route, codec in table.routes]
    errors = {codec.name: codec.error_body for _, codec in table.routes if codec.error_body}
    tagged += [(SERVER, route) for route in admin]
    schemas: dict[str, object] = {"Error": ERROR_SCHEMA}
    found: dict[type, Schema] = {}
    for tag in dict.fromkeys(tag for tag, _ in tagged):
        own = [route for name, route in tagged if name == tag]
        _components(tag, (route.body for route in own), found, schemas)
        # Why apart: a question's `Message` and an answer's are two.
        replies = (*(route.reply for route in own), errors.get(tag))
        _components(f"{tag}.reply", replies, found, schemas)
    paths: dict[str, dict[str, object]] = {}
    for tag, route in tagged:
        error = found[errors[tag]] if tag in errors else ANY_ERROR
        operation = _operation(route, tag, found, error)
        paths.setdefault(route.path, {})[route.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "Tokenwire", "version": __version__},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _components(
    tag: str,
    named: Iterable[type | None],
    found: dict[type, Schema],
    schemas: dict[str, object],
) -> None:
    """Adds what one codec names; `tag` before each name, since two may choose the same."""
    kinds = tuple(dict.fromkeys(kind for kind in named if kind is not None))
    references, components = msgspec.json.schema_components(
        kinds, schema_hook=_any, ref_template=f"#/components/schemas/{tag}.{{name}}"
    )
    found.update(zip(kinds, references, strict=True))
    schemas.update({f"{tag}.{name}": schema for name, schema in components.items()})


def _any(kind: type) -> dict[str, object]:
    """For what is read as it stands. Why not {}: to msgspec that is no schema."""
    return {"description": "any value"}


def _operation(
    route: Route, tag: str, found: Mapping[type, Schema], error: Schema
) -> dict[str, object]:
    words = re.findall(r"[A-Za-z0-9]+", f"{route.method.lower()} {route.path}")
    answer: dict[str, object] = {"description": "The answer"}
    answer["content"] = {
        kind: {"schema": found[route.reply]} if route.reply and kind == JSON else {}
        for kind in route.media
    }
    operation: dict[str, object] = {
        "operationId": "_".join(words),
        "summary": route.summary,
        "tags": [tag],
        "responses": {
            "200": answer,
            "default": {
                "description": "An error, in the protocol's own shape",
                "content": _json(error),
            },
        },
    }
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in PARAMETER.findall(route.path)
    ]
    if parameters:
        operation["parameters"] = parameters
    if route.method in {"POST", "PUT", "PATCH"}:
        body = ANY_OBJECT if route.body is None else found[route.body]
        operation["requestBody"] = {"required": not route.bodiless, "content": _json(body)}
    return operation


def _json(schema: Schema) -> Schema:
    return {JSON: {"schema": schema}}
