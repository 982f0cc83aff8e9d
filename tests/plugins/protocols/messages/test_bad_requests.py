"""Bad input: 400, a message that names field and reason, and nothing but RequestError."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenwire.core.errors import RequestError
from tokenwire.core.wire import HttpRequest
from tokenwire.plugins.protocols.messages.codec import COUNT_PATH, MESSAGES_PATH

USE = {"type": "tool_use", "id": "t", "name": "a", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "t"}
TOOL = {"name": "a", "input_schema": {}}


def said(role, *blocks):
    return {"messages": [{"role": role, "content": list(blocks)}]}


def answering(*blocks):
    asked = {"role": "assistant", "content": [USE]}
    return {"messages": [asked, {"role": "user", "content": list(blocks)}]}


FIRST = "messages[0].content[0]"
WRONG = [
    ({"max_tokens": 0}, "max_tokens", "max_tokens"),
    ({"max_tokens": "9"}, "max_tokens", "expected `int"),
    ({"max_tokens": True}, "max_tokens", "expected `int"),
    ({"model": 3}, "model", "expected `str"),
    ({"model": ""}, "model", "length >= 1"),
    ({"messages": []}, "messages", "length >= 1"),
    ({"messages": {}}, "messages", "expected `array"),
    ({"messages": ["hi"]}, "messages[0]", "expected `object"),
    ({"messages": [{"role": "user"}]}, "messages[0].content", "missing"),
    ({"messages": [{"role": "user", "content": 3}]}, "messages[0].content", "str | array"),
    ({"messages": [{"role": "tool", "content": ""}]}, "messages[0].role", "user, assistant"),
    (said("user", "text"), "messages[0].content[0]", "expected `object"),
    (said("user", {}), "messages[0].content[0].type", "kind of block"),
    (said("user", {"type": "text"}), "messages[0].content[0].text", "missing"),
    (said("user", {"type": "text", "text": 1}), "messages[0].content[0].text", "expected `str"),
    (said("user", USE), "messages[0].content[0].type", "role assistant"),
    (said("assistant", RESULT), "messages[0].content[0].type", "role user"),
    (said("system", RESULT), "messages[0].content[0].type", "must be text"),
    (answering({**RESULT, "content": [USE]}), "messages[1].content[0].content[0].type", "role"),
    (said("user", {**RESULT, "tool_use_id": "toolu_9"}), f"{FIRST}.tool_use_id", "'toolu_9'"),
    (
        answering({**RESULT, "tool_use_id": "T"}),
        "messages[1].content[0].tool_use_id",
        "'T' answers",
    ),
    (said("user", {"type": "tool_result"}), f"{FIRST}.tool_use_id", "missing"),
    (said("user", {**RESULT, "content": 3}), "messages[0].content[0].content", "str | array"),
    (said("user", {**RESULT, "is_error": "no"}), "messages[0].content[0].is_error", "bool"),
    (said("assistant", {**USE, "input": "[" * 500}), "messages[0].content[0].input", "deeper"),
    (said("assistant", {**USE, "name": 1}), "messages[0].content[0].name", "expected `str"),
    (said("user", {"type": "image"}), "messages[0].content[0].source", "missing"),
    (
        said("user", {"type": "image", "source": {"type": "base64", "data": "%%"}}),
        "messages[0].content[0].source.data",
        "base64",
    ),
    (
        said("user", {"type": "image", "source": {"type": "file", "file_id": "f"}}),
        "messages[0].content[0].source.type",
        "keeps no files",
    ),
    (
        said("user", {"type": "image", "source": {"type": "text", "data": "x"}}),
        "messages[0].content[0].source.type",
        "must be base64 or url",
    ),
    (
        said("user", {"type": "image", "source": {"type": "url", "url": "file:///etc/passwd"}}),
        "messages[0].content[0].source.url",
        "http",
    ),
    (
        said("user", {"type": "document", "source": {"type": "base64"}}),
        "messages[0].content[0].source.data",
        "missing",
    ),
    (
        said("user", {"type": "text", "text": "", "cache_control": 1}),
        "messages[0].content[0].cache_control",
        "expected `object",
    ),
    ({"system": 1}, "system", "str | array"),
    ({"system": [{"type": "image"}]}, "system[0].type", "must be text"),
    ({"temperature": -1}, "temperature", ">= 0"),
    ({"temperature": "hot"}, "temperature", "expected `float"),
    ({"top_p": 1.5}, "top_p", "<= 1"),
    ({"top_k": -1}, "top_k", ">= 0"),
    ({"stop_sequences": "x"}, "stop_sequences", "expected `array"),
    ({"stop_sequences": [""]}, "stop_sequences[0]", "length >= 1"),
    ({"stream": "yes"}, "stream", "expected `bool"),
    ({"metadata": {"user_id": 1}}, "metadata.user_id", "expected `str"),
    ({"thinking": {"type": "enabled"}}, "thinking.budget_tokens", "at least 1024"),
    (
        {"thinking": {"type": "enabled", "budget_tokens": 1023}},
        "thinking.budget_tokens",
        "at least 1024",
    ),
    (
        {"thinking": {"type": "enabled", "budget_tokens": 2048}, "max_tokens": 2048},
        "thinking.budget_tokens",
        "less than max_tokens (2048)",
    ),
    ({"thinking": {"type": "deep"}}, "thinking.type", "one of enabled"),
    ({"thinking": {}}, "thinking.type", "missing"),
    ({"output_config": {"format": {"type": "xml", "schema": {}}}}, "output_config.format.type", ""),
    ({"output_config": {"format": {"type": "x"}}}, "output_config.format.schema", "missing"),
    ({"tools": [{"name": "a"}]}, "tools[0].input_schema", "missing"),
    ({"tools": [{"name": "a", "type": "custom"}]}, "tools[0].input_schema", "missing"),
    ({"tools": [{"input_schema": {}}]}, "tools[0].name", "missing"),
    ({"tools": [{"name": "a", "input_schema": []}]}, "tools[0].input_schema", "object"),
    ({"tools": [TOOL, TOOL]}, "tools[1].name", "unique"),
    ({"tool_choice": {"type": "any"}}, "tool_choice.type", "at least one tool"),
    ({"tool_choice": {"type": "tool", "name": "b"}, "tools": [TOOL]}, "tool_choice.name", "'b'"),
    ({"tool_choice": {"type": "tool"}, "tools": [TOOL]}, "tool_choice.name", "None"),
    ({"tool_choice": {"type": "maybe"}}, "tool_choice.type", "auto, any, tool or none"),
    ({"tool_choice": "auto"}, "tool_choice", "expected `object"),
]


@pytest.mark.parametrize(("fields", "param", "reason"), WRONG)
def test_wrong_fields(decode, fields, param, reason):
    with pytest.raises(RequestError) as caught:
        decode(**fields)
    assert caught.value.status == 400
    assert caught.value.param == param
    assert param in caught.value.message
    assert reason in caught.value.message


@pytest.mark.parametrize("name", ["model", "messages", "max_tokens"])
def test_missing_fields(decode, name):
    with pytest.raises(RequestError, match=f"{name} is missing") as caught:
        decode(without=[name])
    assert caught.value.param == name


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"{",
        b"\xff\xfe",
        b'{"model":"\xff"}',
        b'{"model":"m","model":"n"}',
        b'{"model":NaN}',
        b'{"model":"\\ud800"}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"model":"m","max_tokens":1e999,"messages":[{"role":"user","content":"a"}]}',
    ],
)
def test_what_is_no_request(decode, body):
    with pytest.raises(RequestError) as caught:
        decode(body)
    assert caught.value.status == 400


VALID = {
    "model": "m",
    "max_tokens": 2048,
    "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {"role": "user", "content": "a"},
        {
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": "t", "signature": "s"}, USE],
        },
        {"role": "user", "content": [{**RESULT, "content": [{"type": "text", "text": "r"}]}]},
        {
            "role": "user",
            "content": [{"type": "image", "source": {"type": "base64", "data": "aGk="}}],
        },
    ],
    "tools": [TOOL, {"type": "web_search_20250305", "name": "w"}],
    "tool_choice": {"type": "auto"},
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "output_config": {"effort": "high", "format": {"type": "json_schema", "schema": {}}},
    "metadata": {"user_id": "u"},
    "stop_sequences": ["x"],
    "temperature": 1,
    "top_p": 1,
    "top_k": 1,
    "stream": True,
    "cache_control": {"type": "ephemeral"},
}

WORDS = sorted(
    {
        *VALID,
        *("type", "text", "role", "content", "source", "data", "url", "name", "input", "id"),
        *("user", "assistant", "system", "tool_use", "tool_result", "image", "document"),
        *("base64", "thinking", "redacted_thinking", "signature", "tool_use_id", "is_error"),
        *("enabled", "adaptive", "budget_tokens", "format", "json_schema", "schema", "ttl"),
    }
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(WORDS)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
)
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)
# Why: a third of the cases is enough for bytes, of which nearly none are JSON.


def attempt(codec, body, headers=None):
    for path in (MESSAGES_PATH, COUNT_PATH):
        request = HttpRequest("POST", path, headers=headers or {}, body=body)
        try:
            codec.decode(request)
        except RequestError as error:
            refused = codec.encode_error(error, "req_1")
        else:
            continue
        assert 400 <= refused.status < 500
        assert msgspec.json.decode(refused.body)["error"]["message"]


@given(st.binary(max_size=60), st.text(max_size=20))
def test_arbitrary_bytes(codec, body, beta):
    attempt(codec, body, {"anthropic-beta": beta})


@given(st.data())
def test_valid_bytes_with_damage(codec, data):
    body = bytearray(msgspec.json.encode(VALID))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(body) - 1))
        body[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    attempt(codec, bytes(body))


@given(st.data())
def test_valid_bodies_with_a_changed_value(codec, data):
    body = msgspec.json.decode(msgspec.json.encode(VALID))
    place = body
    while True:
        keys = list(place) if isinstance(place, dict) else range(len(place))
        key = data.draw(st.sampled_from(keys))
        inner = place[key]
        if not isinstance(inner, dict | list) or not inner or data.draw(st.booleans()):
            place[key] = data.draw(JSON)
            break
        place = inner
    attempt(codec, msgspec.json.encode(body))


@given(JSON, st.dictionaries(st.sampled_from(sorted(VALID)), JSON, max_size=4))
def test_any_json(codec, value, fields):
    attempt(codec, msgspec.json.encode(value))
    attempt(codec, msgspec.json.encode({**VALID, **fields}))
