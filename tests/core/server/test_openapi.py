"""The OpenAPI document: its references lead somewhere, and it says what is really read."""

from __future__ import annotations

import re

import msgspec
import pytest

from tokenwire.core.host import Host
from tokenwire.core.routes import RouteTable
from tokenwire.core.server.openapi import describe
from tokenwire.core.wire import Route
from tokenwire.plugins.protocols import chat_completions, messages, models
from tokenwire.plugins.protocols.chat_completions.schema import Request
from tokenwire.plugins.protocols.messages.schema import Body

ADMIN = (
    Route("GET", "/health", "Whether the process lives"),
    Route("PUT", "/mock/scripts/{name}", "Tell the mock what to produce"),
)


@pytest.fixture(scope="module")
def document():
    plugins = {"chat_completions": chat_completions, "messages": messages, "models": models}
    host = Host(plugins, entry_points=False)
    table = RouteTable([host.build("codec", name) for name in plugins])
    return msgspec.json.decode(msgspec.json.encode(describe(table, ADMIN)))


def found(document, reference):
    value = document
    for step in reference.removeprefix("#/").split("/"):
        value = value[step]
    return value


def references(value):
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "$ref" and isinstance(inner, str):
                yield inner
            else:
                yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


def body(document, path, method="post"):
    content = document["paths"][path][method]["requestBody"]["content"]
    return content["application/json"]["schema"]


def test_every_reference_leads_to_a_schema(document):
    names = document["components"]["schemas"]
    assert set(references(document)) <= {f"#/components/schemas/{name}" for name in names}
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+", name) for name in names)
    for name, schema in names.items():
        assert isinstance(schema, dict), name


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/v1/chat/completions", Request),
        ("/v1/messages", Body),
        ("/v1/messages/count_tokens", Body),
    ],
)
def test_bodies_have_the_fields_that_are_read(document, path, kind):
    schema = found(document, body(document, path)["$ref"])
    assert set(schema["properties"]) == set(kind.__struct_fields__)
    assert schema["required"] == ["model", "messages"]


def test_ranges_are_said(document):
    chat = found(document, body(document, "/v1/chat/completions")["$ref"])
    number = chat["properties"]["temperature"]["anyOf"][0]
    assert (number["minimum"], number["maximum"]) == (0, 2)


def test_whole_replies_are_described_where_a_codec_names_them(document):
    answer = document["paths"]["/v1/messages/count_tokens"]["post"]["responses"]["200"]
    schema = found(document, answer["content"]["application/json"]["schema"]["$ref"])
    assert schema["properties"] == {"input_tokens": {"type": "integer"}}
    health = document["paths"]["/health"]["get"]["responses"]["200"]
    assert health["content"] == {"application/json": {}}


def test_streams_are_described_beside_whole_replies(document):
    answer = document["paths"]["/v1/chat/completions"]["post"]["responses"]["200"]
    assert set(answer["content"]) == {"application/json", "text/event-stream"}


@pytest.mark.parametrize(
    ("path", "fields"),
    [("/v1/chat/completions", {"error"}), ("/v1/messages", {"type", "error", "request_id"})],
)
def test_errors_have_their_protocols_shape(document, path, fields):
    answer = document["paths"][path]["post"]["responses"]["default"]
    schema = found(document, answer["content"]["application/json"]["schema"]["$ref"])
    assert set(schema["properties"]) == fields


def test_a_body_without_a_struct_is_any_object(document):
    assert body(document, "/mock/scripts/{name}", "put") == {"type": "object"}


def test_the_shape_is_that_of_openapi(document):
    assert document["openapi"].startswith("3.1.")
    assert set(document["info"]) == {"title", "version"}
    seen = set()
    for path, operations in document["paths"].items():
        assert path.startswith("/")
        for operation in operations.values():
            seen.add(operation["operationId"])
            assert set(operation["responses"]) == {"200", "default"}
            told = {parameter["name"] for parameter in operation.get("parameters", ())}
            assert told == set(re.findall(r"\{([^}]+)\}", path))
    assert len(seen) == sum(map(len, document["paths"].values()))


def test_it_is_valid_by_the_specification(document):
    validator = pytest.importorskip("openapi_spec_validator", reason="it is not installed")
    validator.validate(document)
