"""The OpenAPI 3.1 description: the route table's paths and the admin ones. Knows no server."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tokenwire.core import __version__
from tokenwire.core.routes import RouteTable
from tokenwire.core.wire import Route

__all__ = ("describe",)

PARAMETER = re.compile(r"\{([^}]+)\}")
ERROR_SCHEMA = {
    "type": "object",
    "properties": {"error": {"type": "object"}},
    "required": ["error"],
}
JSON_BODY = {"application/json": {"schema": {"type": "object"}}}


def describe(table: RouteTable, admin: Iterable[Route]) -> dict[str, object]:
    """The whole document, as JSON-able builtins."""
    paths: dict[str, dict[str, object]] = {}
    for route, codec in table.routes:
        operation = _operation(route, codec.name)
        paths.setdefault(route.path, {})[route.method.lower()] = operation
    for route in admin:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, "server")
    return {
        "openapi": "3.1.0",
        "info": {"title": "Tokenwire", "version": __version__},
        "paths": paths,
        "components": {"schemas": {"Error": ERROR_SCHEMA}},
    }


def _operation(route: Route, tag: str) -> dict[str, object]:
    words = re.findall(r"[A-Za-z0-9]+", f"{route.method.lower()} {route.path}")
    operation: dict[str, object] = {
        "operationId": "_".join(words),
        "summary": route.summary,
        "tags": [tag],
        "responses": {
            "200": {"description": "The answer"},
            "default": {
                "description": "An error, in the protocol's own shape",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
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
        operation["requestBody"] = {"required": True, "content": JSON_BODY}
    return operation
