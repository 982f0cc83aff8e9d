"""The server's own OpenAPI document, made ready for a fuzzer: names that exist, and beside "any
object" the kinds of objects that are read there, so that what is generated gets past the first
door."""

from __future__ import annotations

from typing import Any

import httpx

__all__ = ("prepared",)

Json = dict[str, Any]

MODELS = ["mock", "script"]


def prepared(url: str) -> Json:
    """The document of the server at `url`, where some answers and conversations are stored."""
    document: Json = httpx.get(f"{url}/openapi.json").raise_for_status().json()
    schemas: Json = document["components"]["schemas"]
    for schema in schemas.values():
        fields = schema.get("properties", {})
        if "model" in fields:
            fields["model"] = {"enum": MODELS}
        # Why: a deadline may really pass, and 504 is then no fault.
        fields.pop("deadline_ms", None)
    for path, fields in KINDS.items():
        component, field = path
        _enrich(schemas[component]["properties"][field], fields)
    body = document["paths"]["/v1/messages"]["post"]["requestBody"]["content"]["application/json"]
    body["schema"] = {"allOf": [body["schema"], {"required": ["max_tokens"]}]}
    known = {"model": MODELS, "owner": MODELS, "name": ["a", "b"], **_stored(url)}
    for operations in document["paths"].values():
        for operation in operations.values():
            for parameter in operation.get("parameters", ()):
                some = known.get(parameter["name"], [])
                parameter["schema"] = {"anyOf": [{"enum": some}, {"type": "string"}]}
    return document


def _stored(url: str) -> Json:
    """Ids of what is there to be got, changed and deleted."""
    responses, talks, items = [], [], []
    for k in range(8):
        body: Json = {"model": "mock", "input": f"hello {k}", "background": k % 2 == 1}
        made = httpx.post(f"{url}/v1/responses", json=body).raise_for_status().json()
        responses.append(made["id"])
        first = {"items": [{"role": "user", "content": "a"}]}
        talk = httpx.post(f"{url}/v1/conversations", json=first).raise_for_status().json()
        talks.append(talk["id"])
        listed = httpx.get(f"{url}/v1/conversations/{talk['id']}/items").json()
        items.append(listed["data"][0]["id"])
    return {"response_id": responses, "conversation_id": talks, "item_id": items}


def _enrich(schema: Any, kinds: list[Json]) -> None:
    """Every "any object" of lists within `schema` may also be one of `kinds`."""
    if isinstance(schema, dict):
        items = schema.get("items")
        if isinstance(items, dict) and items.get("type") == "object":
            schema["items"] = {"anyOf": [*kinds, items]}
            return
        for inner in schema.values():
            _enrich(inner, kinds)
    elif isinstance(schema, list):
        for inner in schema:
            _enrich(inner, kinds)


def thing(kind: str | None, **fields: Any) -> Json:
    own: Json = {} if kind is None else {"type": {"const": kind}}
    properties = {**own, **fields}
    return {"type": "object", "properties": properties, "required": list(properties)}


TEXT = {"type": "string", "maxLength": 20}
WORD = {"type": "string", "minLength": 1, "maxLength": 20}
BASE64 = {"enum": ["", "aGk=", "iVBORw0KGgo="]}
URL = {"enum": ["data:image/png;base64,iVBORw0KGgo=", "data:,", "https://localhost/a.png"]}
ID = {"enum": ["a", "b"]}
SCHEMA = {
    "enum": [
        {"type": "object"},
        {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
        {"type": 5},
    ]
}
FUNCTION = {"name": ID, "description": TEXT, "parameters": SCHEMA}
SOURCES = {
    "anyOf": [
        thing("base64", media_type={"enum": ["image/png", "a"]}, data=BASE64),
        thing("url", url=URL),
        thing("text", media_type={"const": "text/plain"}, data=TEXT),
    ]
}
CHAT_PARTS = [
    thing("text", text=TEXT),
    thing("image_url", image_url=thing(None, url=URL)),
    thing("input_audio", input_audio=thing(None, data=BASE64, format={"enum": ["wav", "mp3"]})),
    thing("file", file=thing(None, file_data=URL, filename=TEXT)),
]
BLOCKS = [
    thing("text", text=TEXT),
    thing("image", source=SOURCES),
    thing("document", source=SOURCES),
    thing("thinking", thinking=TEXT, signature=TEXT),
    thing("redacted_thinking", data=TEXT),
    thing("tool_use", id=ID, name=ID, input={"type": "object"}),
    thing("tool_result", tool_use_id=ID, content=TEXT),
    thing("search_result", source=TEXT, title=TEXT, content={"type": "array", "items": {}}),
]
CONTENTS = {
    "anyOf": [
        TEXT,
        {
            "type": "array",
            "maxItems": 3,
            "items": {
                "anyOf": [
                    thing("input_text", text=TEXT),
                    thing("output_text", text=TEXT),
                    thing("input_image", image_url=URL),
                    thing("input_file", file_data=URL, filename=TEXT),
                ]
            },
        },
    ]
}
ITEMS = [
    thing(None, role={"enum": ["user", "assistant", "system", "developer"]}, content=CONTENTS),
    thing("function_call", call_id=ID, name=ID, arguments=TEXT),
    thing("function_call_output", call_id=ID, output=CONTENTS),
    thing("custom_tool_call", call_id=ID, name=ID, input=TEXT),
    thing("custom_tool_call_output", call_id=ID, output=TEXT),
    thing("reasoning", summary={"type": "array", "items": thing("summary_text", text=TEXT)}),
    thing("item_reference", id=TEXT),
    thing("web_search_call", id=TEXT, status=TEXT),
]
KINDS: dict[tuple[str, str], list[Json]] = {
    ("chat_completions.Message", "content"): CHAT_PARTS,
    ("chat_completions.Request", "tools"): [
        thing("function", function=thing(None, **FUNCTION)),
        thing("custom", custom=thing(None, name=ID)),
    ],
    ("messages.Turn", "content"): BLOCKS,
    ("messages.Body", "system"): BLOCKS[:1],
    ("messages.Body", "tools"): [thing(None, name=ID, input_schema=SCHEMA)],
    ("responses.Request", "input"): ITEMS,
    ("responses.CountRequest", "input"): ITEMS,
    ("responses.Request", "tools"): [thing("function", **FUNCTION), thing("custom", name=ID)],
    ("responses.ItemsBody", "items"): ITEMS,
    ("responses.ConversationBody", "items"): ITEMS,
}
"""(component, field of it) -> what its objects may be."""
