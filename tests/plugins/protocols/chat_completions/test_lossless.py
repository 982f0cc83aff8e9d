"""A request is written again as it was read: every message, part, setting and unknown field, under
the name that the client gave it. What says nothing is left out: null, a default spelled out."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenwire.core.wire import HttpRequest
from tokenwire.plugins.protocols.chat_completions.codec import ChatCompletions

CODEC = ChatCompletions()
CLIENT = CODEC.client()
PATH = "/v1/chat/completions"
TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
WORD = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
SCALARS = st.one_of(st.booleans(), st.integers(-9, 9), TEXT)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(WORD, inner, max_size=2)),
    max_leaves=4,
)
UNKNOWN = st.dictionaries(WORD.map(lambda name: f"x-{name}"), SCALARS.filter(bool), max_size=1)
DATA = st.binary(min_size=1, max_size=5).map(lambda data: b64encode(data).decode())


def thing(optional: dict[str, Any] | None = None, **fields: Any) -> st.SearchStrategy[Any]:
    own = st.fixed_dictionaries(fields, optional=optional or {})
    return st.tuples(own, UNKNOWN).map(lambda parts: {**parts[0], **parts[1]})


URL = st.one_of(
    WORD.map(lambda path: f"https://h/{path}"),
    DATA.map(lambda data: f"data:image/png;base64,{data}"),
)
PARTS = st.one_of(
    thing(type=st.just("text"), text=TEXT),
    thing(type=st.just("image_url"), image_url=thing({"detail": st.just("low")}, url=URL)),
    thing(type=st.just("image_url"), image_url=URL),
    thing(
        type=st.just("input_audio"),
        input_audio=thing(data=DATA, format=st.sampled_from(["wav", "mp3"])),
    ),
    thing(type=st.just("file"), file=thing(file_data=DATA, filename=WORD)),
)
CONTENT = st.one_of(TEXT, st.lists(PARTS, min_size=1, max_size=3))
ARGUMENTS = st.dictionaries(WORD, JSON, max_size=2).map(json.dumps)
CALLS = st.one_of(
    thing(
        id=st.just("c1"),
        type=st.just("function"),
        function=st.fixed_dictionaries({"name": st.just("f"), "arguments": ARGUMENTS}),
    ),
    thing(
        id=st.just("c1"),
        type=st.just("custom"),
        custom=st.fixed_dictionaries({"name": st.just("f"), "input": TEXT}),
    ),
)
ASSISTANT = thing(
    {
        "content": st.one_of(TEXT, st.lists(thing(type=st.just("text"), text=WORD), max_size=2)),
        "tool_calls": st.lists(CALLS, min_size=1, max_size=2),
        "name": WORD,
    },
    role=st.just("assistant"),
)
THOUGHT = st.tuples(ASSISTANT, st.sampled_from(["reasoning", "reasoning_content"]), WORD).map(
    lambda parts: {**parts[0], parts[1]: parts[2]}
)
FIRST = {
    "role": "assistant",
    "tool_calls": [
        {"id": f"c{k}", "type": "function", "function": {"name": "f", "arguments": '{"a": 1.0}'}}
        for k in (1, 2)
    ],
}
MESSAGES = st.lists(
    st.one_of(
        thing(
            {"name": WORD},
            role=st.sampled_from(["system", "developer", "user"]),
            content=CONTENT,
        ),
        ASSISTANT,
        THOUGHT,
        thing(
            {"name": WORD},
            role=st.just("tool"),
            tool_call_id=st.sampled_from(["c1", "c2"]),
            content=st.one_of(TEXT, st.lists(PARTS, min_size=1, max_size=2)),
        ),
        st.just({"role": "assistant", "refusal": "no"}),
    ),
    max_size=4,
).map(lambda rest: [FIRST, *rest])
SCHEMA = st.fixed_dictionaries({"type": st.just("object"), "x": JSON})
TOOLS = st.lists(
    st.one_of(
        thing(
            type=st.just("function"),
            function=thing(
                {"description": TEXT, "parameters": SCHEMA, "strict": st.booleans()}, name=WORD
            ),
        ),
        thing(type=st.just("custom"), custom=thing({"description": TEXT}, name=WORD)),
        st.just({"type": "web_search", "size": 3}),
    ),
    min_size=1,
    max_size=3,
)
FORMATS = st.one_of(
    st.just({"response_format": {"type": "json_object"}}),
    st.fixed_dictionaries(
        {
            "type": st.just("json_schema"),
            "json_schema": st.fixed_dictionaries(
                {"name": WORD, "schema": SCHEMA}, optional={"strict": st.booleans()}
            ),
        }
    ).map(lambda value: {"response_format": value}),
    st.just({"response_format": {"type": "choice", "choices": ["a", "b"]}}),
    st.just({"response_format": {"type": "regex", "regex": "a+"}}),
    st.just({"response_format": {"type": "structural_tag", "format": {"type": "any_text"}}}),
    SCHEMA.map(lambda schema: {"structured_outputs": {"json": schema}}),
    st.just({"structured_outputs": {"json_object": True}}),
    st.just({"structured_outputs": {"choice": ["a"]}}),
    SCHEMA.map(lambda schema: {"guided_json": schema}),
    st.just({"guided_choice": ["a", "b"]}),
    st.just({"guided_regex": "a+"}),
    st.just({"regex": "a+"}),
    st.just({"guided_grammar": "root ::= x"}),
    st.just({"ebnf": "root ::= x"}),
)
THINKING = st.one_of(
    *(
        st.just(value)
        for value in (
            {"thinking": {"type": "enabled", "budget_tokens": 9}},
            {"thinking": {"type": "disabled"}},
            {"thinking": True},
            {"enable_thinking": False},
            {"enable_thinking": True, "thinking_token_budget": 9},
            {"reasoning_effort": "none"},
            {"reasoning_effort": "high"},
            {"thinking_token_budget": 5, "reasoning_effort": "low"},
        )
    )
)
LIMITS = st.sampled_from([{"max_tokens": 7}, {"max_completion_tokens": 7}])
WHO = st.sampled_from([{"user": "u"}, {"safety_identifier": "u"}])
SESSION = st.sampled_from([{"session_id": "s"}, {"prompt_cache_key": "s"}])
STOP = st.sampled_from([{"stop": "x"}, {"stop": ["x"]}, {"stop": ["x", "y"]}])
KEPT = st.sampled_from([{"include_stop_str_in_output": True}, {"no_stop_trim": True}])
TEMPLATE = st.sampled_from(
    [
        {"chat_template_kwargs": {"a": 1}},
        {"chat_template_args": {"a": 1}},
        {"documents": [{"text": "d"}]},
        {"documents": [{"text": "d"}], "chat_template_kwargs": {"a": 1}},
    ]
)
STREAM = st.sampled_from(
    [
        {"stream": True},
        {"stream": True, "stream_options": {"include_usage": True}},
        {
            "stream": True,
            "stream_options": {"include_usage": True, "continuous_usage_stats": True, "x": 1},
        },
    ]
)
GROUPS = (FORMATS, THINKING, LIMITS, WHO, SESSION, STOP, KEPT, TEMPLATE, STREAM)
SETTINGS = st.tuples(*(st.one_of(st.just({}), group) for group in GROUPS)).map(
    lambda groups: {key: value for group in groups for key, value in group.items()}
)
PLAIN = st.fixed_dictionaries(
    {"model": st.just("m"), "messages": MESSAGES},
    optional={
        "tools": TOOLS,
        "temperature": st.sampled_from([0, 0.5]),
        "top_p": st.just(0.5),
        "top_k": st.integers(0, 5),
        "min_p": st.just(0.1),
        "seed": st.integers(-9, 9),
        "logit_bias": st.just({"65": 3}),
        "n": st.integers(2, 3),
        "logprobs": st.just(True),
        "min_tokens": st.integers(1, 3),
        "stop_token_ids": st.just([65]),
        "parallel_tool_calls": st.just(False),
        "modalities": st.just(["text"]),
        "add_generation_prompt": st.booleans(),
        "include_reasoning": st.booleans(),
        "priority": st.integers(1, 3),
        "cache_salt": WORD,
        "metadata": st.dictionaries(WORD, WORD, max_size=2),
        "service_tier": st.just("auto"),
        "x-odd": JSON,
    },
)
BODIES = st.tuples(PLAIN, SETTINGS).map(lambda parts: {**parts[0], **parts[1]})


def said(value: Any) -> Any:
    """Without what says nothing."""
    match value:
        case dict():
            return {key: said(item) for key, item in value.items() if item is not None}
        case list():
            return [said(item) for item in value]
    return value


def come_back(body: dict[str, Any]) -> Any:
    call = CODEC.decode(HttpRequest("POST", PATH, body=json.dumps(body).encode()))
    written = CLIENT.request(call)
    assert CODEC.decode(written) == call
    return msgspec.json.decode(written.body)


@given(BODIES)
def test_a_request_comes_back_as_it_was(body: dict[str, Any]) -> None:
    assert said(come_back(body)) == said(body)


@pytest.mark.parametrize(
    "choice",
    [
        "none",
        "required",
        {"type": "function", "function": {"name": "f"}},
        {"type": "custom", "custom": {"name": "c"}},
        {
            "type": "allowed_tools",
            "allowed_tools": {
                "mode": "required",
                "tools": [{"type": "function", "function": {"name": "f"}}],
            },
        },
    ],
)
def test_a_choice_of_tools_comes_back(choice: Any) -> None:
    tools = [
        {"type": "function", "function": {"name": "f"}},
        {"type": "custom", "custom": {"name": "c"}},
    ]
    messages = [{"role": "user", "content": "a"}]
    body = {"model": "m", "messages": messages, "tools": tools, "tool_choice": choice}
    assert come_back(body) == body
