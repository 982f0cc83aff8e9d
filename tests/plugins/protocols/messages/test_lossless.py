"""A request is written again as it was read: every block, setting and unknown field, message by
message. Only what says nothing is left out: null, a default that is spelled out."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenwire.core.call import Call, Count
from tokenwire.core.wire import HttpRequest
from tokenwire.plugins.protocols.messages.client import request
from tokenwire.plugins.protocols.messages.codec import COUNT_PATH, MESSAGES_PATH, MessagesCodec

TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
WORD = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-9, 9), TEXT)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(WORD, inner, max_size=2)),
    max_leaves=4,
)
UNKNOWN = st.dictionaries(WORD.map(lambda name: f"x-{name}"), SCALARS.filter(bool), max_size=1)
CONTROL: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.just({}),
    st.sampled_from([{"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}]).map(
        lambda control: {"cache_control": control}
    ),
)
DATA = st.binary(max_size=5).map(lambda data: b64encode(data).decode())


def block(kind: str, **fields: Any) -> st.SearchStrategy[dict[str, Any]]:
    own = st.fixed_dictionaries({"type": st.just(kind), **fields})
    return st.tuples(own, UNKNOWN, CONTROL).map(lambda parts: {**parts[0], **parts[1], **parts[2]})


def source(kind: str, **fields: Any) -> st.SearchStrategy[dict[str, Any]]:
    own = st.fixed_dictionaries({"type": st.just(kind), **fields})
    return st.tuples(own, UNKNOWN).map(lambda parts: {**parts[0], **parts[1]})


URL = WORD.map(lambda path: f"https://h/{path}")
TEXTS = block("text", text=TEXT)
IMAGES = block(
    "image",
    source=st.one_of(
        source("base64", media_type=st.just("image/png"), data=DATA), source("url", url=URL)
    ),
)
INNER = st.one_of(TEXTS, IMAGES, block("tool_reference", tool_name=WORD))
DOCUMENTS = block(
    "document",
    source=st.one_of(
        source("text", media_type=st.just("text/plain"), data=TEXT),
        source("base64", media_type=st.just("application/pdf"), data=DATA),
        source("url", url=URL),
        source("content", content=st.one_of(TEXT, st.lists(TEXTS, max_size=2))),
    ),
    title=TEXT,
)
RESULTS = block("search_result", source=WORD, title=WORD, content=st.lists(TEXTS, max_size=2))
OPAQUE = block("mcp_odd", odd=JSON)
THINKING = st.one_of(
    block("thinking", thinking=TEXT, signature=WORD), block("redacted_thinking", data=WORD)
)
USES = block(
    "tool_use",
    id=st.sampled_from(["toolu_1", "toolu_2"]),
    name=st.just("f"),
    input=st.one_of(st.dictionaries(WORD, JSON, max_size=2), st.lists(SCALARS, max_size=2)),
)
ANSWERS = block(
    "tool_result",
    tool_use_id=st.sampled_from(["toolu_1", "toolu_2"]),
    content=st.one_of(TEXT, st.lists(INNER, min_size=1, max_size=2)),
    is_error=st.just(True),
)
FIRST = {
    "role": "assistant",
    "content": [
        {"type": "tool_use", "id": f"toolu_{k}", "name": "f", "input": {"a": 1.0}} for k in (1, 2)
    ],
}


def message(role: str, blocks: Any) -> st.SearchStrategy[dict[str, Any]]:
    content = st.one_of(TEXT, st.lists(blocks, max_size=3))
    own = st.fixed_dictionaries({"role": st.just(role), "content": content})
    return st.tuples(own, UNKNOWN).map(lambda parts: {**parts[0], **parts[1]})


MESSAGES = st.lists(
    st.one_of(
        message("user", st.one_of(TEXTS, IMAGES, DOCUMENTS, RESULTS, ANSWERS, OPAQUE)),
        message("assistant", st.one_of(TEXTS, THINKING, USES, OPAQUE)),
        message("system", TEXTS),
    ),
    max_size=4,
).flatmap(lambda rest: st.sampled_from([[FIRST, *rest], [{"role": "user", "content": "q"}, FIRST]]))
SCHEMA = st.fixed_dictionaries({"type": st.just("object"), "x": JSON})
TOOLS = st.lists(
    st.one_of(
        st.tuples(
            st.fixed_dictionaries(
                {"name": WORD, "input_schema": SCHEMA},
                optional={"description": TEXT, "strict": st.booleans(), "type": st.just("custom")},
            ),
            UNKNOWN,
            CONTROL,
        ).map(lambda parts: {**parts[0], **parts[1], **parts[2]}),
        st.just({"type": "web_search_20250305", "name": "w", "max_uses": 3}),
    ),
    max_size=3,
    unique_by=lambda tool: tool["name"],
).map(lambda tools: sorted(tools, key=lambda tool: "input_schema" not in tool))
FORMAT = st.fixed_dictionaries({"type": st.just("json_schema"), "schema": SCHEMA})
LINE = "x-anthropic-billing-header: v=1;\n"
SYSTEM = st.one_of(
    WORD,
    WORD.map(lambda text: f"{LINE}{text.strip() or 'a'}"),
    st.lists(TEXTS, min_size=1, max_size=3),
    st.lists(TEXTS, max_size=2).map(lambda rest: [{"type": "text", "text": LINE}, *rest]),
)
THINKS = st.one_of(
    st.just({"type": "enabled", "budget_tokens": 1024}),
    st.just({"type": "adaptive", "display": "summarized"}),
    st.just({"type": "disabled"}),
)
BODIES = st.fixed_dictionaries(
    {"model": st.just("m"), "messages": MESSAGES, "max_tokens": st.integers(2000, 3000)},
    optional={
        "system": SYSTEM,
        "tools": TOOLS,
        "thinking": THINKS,
        "output_config": st.fixed_dictionaries(
            {}, optional={"effort": st.just("high"), "format": FORMAT, "task_budget": JSON}
        ),
        "output_format": FORMAT,
        "metadata": st.fixed_dictionaries({}, optional={"user_id": WORD, "team": WORD}),
        "stop_sequences": st.lists(WORD, max_size=2),
        "stream": st.booleans(),
        "temperature": st.sampled_from([0, 0.5, 1]),
        "top_p": st.sampled_from([0, 0.5, 1]),
        "top_k": st.integers(0, 5),
        "service_tier": st.just("auto"),
        "x-odd": JSON,
    },
)


def said(value: Any, *, top: bool = True) -> Any:
    """Without what says nothing."""
    nothing: tuple[Any, ...] = (None, [], {}) if top else (None,)
    if isinstance(value, dict):
        kept = {
            key: item if key in ("input_schema", "schema", "input") else said(item, top=False)
            for key, item in value.items()
        }
        return {
            key: item
            for key, item in kept.items()
            if not any(item == each and type(item) is type(each) for each in nothing)
            and not (top and key == "stream" and item is False)
        }
    if isinstance(value, list):
        return [said(item, top=False) for item in value]
    return value


@given(body=BODIES)
def test_a_request_comes_back_as_it_was(codec: MessagesCodec, body: dict[str, Any]) -> None:
    if "format" in body.get("output_config", {}):
        body.pop("output_format", None)  # Two formats say one thing, and the newer place wins.
    call = codec.decode(HttpRequest("POST", MESSAGES_PATH, body=msgspec.json.encode(body)))
    assert isinstance(call, Call)
    written = request(call)
    again = msgspec.json.decode(written.body)
    assert said(again) == said(body)
    assert codec.decode(written) == call


def test_counting_comes_back_as_it_was(codec: MessagesCodec) -> None:
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "a"}]}],
    }
    asked = codec.decode(HttpRequest("POST", COUNT_PATH, body=msgspec.json.encode(body)))
    assert isinstance(asked, Count)
    written = request(asked.call, is_count=True)
    assert written.path == COUNT_PATH
    assert msgspec.json.decode(written.body) == body


@pytest.mark.parametrize(
    "more",
    [
        {"cache_control": {"type": "ephemeral", "ttl": "5m"}},
        {"tool_choice": {"type": "any"}},
        {"tool_choice": {"type": "tool", "name": "f", "disable_parallel_tool_use": True}},
        {"output_format": {"type": "json_schema", "schema": {"type": "object"}}},
    ],
)
def test_settings_that_depend_on_others_come_back(codec: MessagesCodec, more: Any) -> None:
    tool = {"name": "f", "input_schema": {"type": "object"}}
    messages = [{"role": "user", "content": "a"}]
    body = {"model": "m", "max_tokens": 9, "messages": messages, "tools": [tool], **more}
    call = codec.decode(HttpRequest("POST", MESSAGES_PATH, body=msgspec.json.encode(body)))
    assert isinstance(call, Call)
    assert msgspec.json.decode(request(call).body) == body
