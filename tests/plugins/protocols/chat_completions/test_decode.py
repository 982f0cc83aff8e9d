"""Requests: which wire field becomes which of ours, what is refused, what is listed as ignored."""

from __future__ import annotations

import json
from base64 import b64encode
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenwire.core.call import Hints, Identity
from tokenwire.core.dialogue import (
    Audio,
    Document,
    Image,
    Reasoning,
    ReasoningSettings,
    ResponseFormat,
    Text,
    ToolCall,
    ToolChoice,
    ToolResult,
    ToolSpec,
)
from tokenwire.core.errors import RequestError
from tokenwire.core.testing.strategies import calls
from tokenwire.core.wire import HttpRequest
from tokenwire.plugins.protocols.chat_completions.client import ChatClient
from tokenwire.plugins.protocols.chat_completions.codec import ChatCompletions

CODEC = ChatCompletions()
CLIENT = ChatClient()
USER = {"role": "user", "content": "x"}
CALLED = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
CUSTOM = {"type": "custom", "custom": {"name": "g", "format": {"type": "text"}}}


def decode_bytes(body: bytes, headers=None):
    path = "/v1/chat/completions"
    return CODEC.decode(HttpRequest("POST", path, headers or {}, body=body))


def decode(**fields):
    return decode_bytes(json.dumps({"model": "m", "messages": [USER]} | fields).encode())


def refused(**fields) -> RequestError:
    with pytest.raises(RequestError) as caught:
        decode(**fields)
    assert caught.value.status == 400
    return caught.value


def messages(*given):
    return decode(messages=[USER, *given]).dialogue.turns[1:]


def parts(*content):
    return decode(messages=[{"role": "user", "content": list(content)}]).dialogue.turns[0].parts


def test_roles_become_turns():
    turns = decode(
        messages=[
            {"role": "system", "content": "s"},
            {"role": "developer", "content": "d"},
            {"role": "user", "content": "u", "name": "ann"},
            {"role": "assistant", "content": "a"},
        ]
    ).dialogue.turns
    assert [turn.role for turn in turns] == ["system", "developer", "user", "assistant"]
    assert [turn.parts for turn in turns] == [(Text(t),) for t in "sdua"]
    assert turns[2].name == "ann"


def test_content_parts_keep_their_order_and_type():
    png = b64encode(b"png").decode()
    assert parts(
        {"type": "text", "text": "a"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{png}"}},
        {"type": "image_url", "image_url": {"url": "https://x.test/a.png", "detail": "low"}},
        {"type": "input_audio", "input_audio": {"data": png, "format": "mp3"}},
        {"type": "file", "file": {"file_data": png, "filename": "a.txt"}},
        {"type": "text", "text": "b"},
    ) == (
        Text("a"),
        Image(data=b"png", media_type="image/png"),
        Image(url="https://x.test/a.png", detail="low"),
        Audio(data=b"png", media_type="audio/mpeg"),
        Document(data=b"png", name="a.txt"),
        Text("b"),
    )


@pytest.mark.parametrize(
    ("part", "param"),
    [
        ({"type": "video_url", "video_url": {}}, "messages[0].content[0].type"),
        ({"text": "x"}, "messages[0].content[0].type"),
        ({"type": "text"}, "messages[0].content[0].text"),
        ({"type": "text", "text": 3}, "messages[0].content[0].text"),
        ({"type": "image_url"}, "messages[0].content[0].image_url"),
        ({"type": "image_url", "image_url": {"url": "file:///x"}}, "...image_url.url"),
        ({"type": "image_url", "image_url": {"url": "data:image/png,x"}}, "...image_url.url"),
        ({"type": "image_url", "image_url": {"url": "data:;base64,*"}}, "...image_url.url"),
        ({"type": "input_audio", "input_audio": {"data": "AA=="}}, "...input_audio.format"),
        ({"type": "file", "file": {"file_id": "file-1"}}, "...file.file_id"),
        ({"type": "file", "file": {}}, "...file.file_data"),
    ],
)
def test_bad_parts_are_named_with_their_place(part, param):
    error = refused(messages=[{"role": "user", "content": [part]}])
    assert error.param == param.replace("...", "messages[0].content[0].")
    assert error.param in error.message


@pytest.mark.parametrize("content", [{}, {"content": None}, {"content": ""}, {"content": []}])
def test_no_content_beside_calls_is_the_same_however_it_is_said(content):
    (turn,) = messages({"role": "assistant", "tool_calls": [CALLED], **content})
    assert turn.parts == (ToolCall("c1", "f", "{}"),)


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_is_read_under_both_names(field):
    (turn,) = messages({"role": "assistant", "content": "a", field: "hm"})
    assert turn.parts == (Reasoning("hm"), Text("a"))


@pytest.mark.parametrize(
    "content",
    ["3.1 m", [{"type": "text", "text": "3.1"}, {"type": "text", "text": " m"}], "", None],
)
def test_tool_results_are_strings_or_parts(content):
    _, turn = messages(
        {"role": "assistant", "content": None, "tool_calls": [CALLED]},
        {"role": "tool", "tool_call_id": "c1", "content": content},
    )
    texts = [part["text"] for part in content] if isinstance(content, list) else [content]
    wanted = tuple(Text(text) for text in texts if text is not None)
    assert turn.role == "tool"
    assert turn.parts == (ToolResult("c1", wanted, name="f"),)


@pytest.mark.parametrize("id_", [{}, {"tool_call_id": None}, {"tool_call_id": "zzz"}])
def test_a_result_must_answer_a_call(id_):
    error = refused(messages=[USER, {"role": "tool", "content": "3 m", **id_}])
    assert error.param == "messages[1].tool_call_id"


def test_calls_without_results_are_tolerated():
    _, turn, _ = messages(USER, {"role": "assistant", "tool_calls": [CALLED]}, USER)
    assert [part.id for part in turn.parts] == ["c1"]


@pytest.mark.parametrize("text", ['{"room": "hall", "lev', "null", "", "[]", "3", '"x"'])
def test_malformed_arguments_in_history_are_kept_and_listed(text):
    called = CALLED | {"function": {"name": "f", "arguments": text}}
    call = decode(messages=[USER, {"role": "assistant", "tool_calls": [called]}])
    assert call.dialogue.turns[1].parts == (ToolCall("c1", "f", text),)
    assert call.ignored == ("messages[].tool_calls[].function.arguments",)


def test_arguments_are_kept_to_the_letter():
    text = '{"a": 9007199254740993, "b": 1e400, "c": 0.10, "d": -0}'
    called = CALLED | {"function": {"name": "f", "arguments": text}}
    (turn,) = messages({"role": "assistant", "tool_calls": [called]})
    assert turn.parts[0].arguments == text


def test_custom_calls_and_the_old_function_calls():
    custom = {"id": "c2", "type": "custom", "custom": {"name": "g", "input": "free text"}}
    one, two, three = messages(
        {"role": "assistant", "tool_calls": [custom]},
        {"role": "assistant", "content": None, "function_call": {"name": "h", "arguments": "{}"}},
        {"role": "function", "name": "h", "content": "r"},
    )
    assert one.parts == (ToolCall("c2", "g", "free text", custom=True),)
    assert two.parts[0].name == "h"
    assert three.parts == (ToolResult(two.parts[0].id, (Text("r"),), name="h"),)


def test_tools_keep_their_schema_to_the_letter():
    body = (
        b'{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function",'
        b'"function":{"name":"f","description":"d","strict":true,"parameters":'
        b'{"z": 9007199254740993, "a":1.0,  "b":1e2}}}]}'
    )
    (tool,) = decode_bytes(body).dialogue.tools
    text = '{"z": 9007199254740993, "a":1.0,  "b":1e2}'
    assert tool == ToolSpec("f", "d", text, strict=True)


@pytest.mark.parametrize(
    ("fields", "listed"),
    [
        ({"tool_choice": {"type": "custom", "custom": {"name": "g"}, "odd": 1}}, "tool_choice.odd"),
        (
            {"tool_choice": {"type": "custom", "custom": {"name": "g", "odd": 1}}},
            "tool_choice.custom.odd",
        ),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": {}}, "odd": 1}},
            "response_format.odd",
        ),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": {}, "odd": 1}}},
            "response_format.json_schema.odd",
        ),
    ],
)
def test_what_nobody_reads_in_a_choice_or_a_format_is_listed(fields, listed):
    assert decode(tools=[CUSTOM], **fields).ignored == (listed,)


def test_custom_tools_are_typed_and_hosted_ones_listed():
    call = decode(tools=[CUSTOM, {"type": "web_search"}])
    assert call.dialogue.tools == (ToolSpec("g", custom=True, extra={"format": {"type": "text"}}),)
    assert "tools[].web_search" in call.ignored


@pytest.mark.parametrize(
    ("given", "choice"),
    [
        (None, ToolChoice()),
        ("auto", ToolChoice()),
        ("none", ToolChoice("none")),
        ("required", ToolChoice("required")),
        ({"type": "function", "function": {"name": "f"}}, ToolChoice("named", ("f",))),
        ({"type": "custom", "custom": {"name": "g"}}, ToolChoice("named", ("g",))),
        (
            {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [TOOL]}},
            ToolChoice("allowed", ("f",), required=True),
        ),
    ],
)
def test_tool_choice(given, choice):
    assert decode(tools=[TOOL, CUSTOM], tool_choice=given).dialogue.tool_choice == choice


def test_parallel_tool_calls():
    choice = decode(tools=[TOOL], parallel_tool_calls=False).dialogue.tool_choice
    assert choice == ToolChoice(parallel=False)


@pytest.mark.parametrize(
    ("tools", "choice"),
    [
        ([TOOL], {"type": "function", "function": {"name": "other"}}),
        ([], "required"),
        ([], {"type": "function", "function": {"name": "f"}}),
        ([TOOL], "sometimes"),
        ([TOOL], {"type": "function"}),
        ([TOOL], {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}}),
    ],
)
def test_a_choice_must_be_of_what_there_is(tools, choice):
    assert refused(tools=tools, tool_choice=choice).param == "tool_choice"


@pytest.mark.parametrize("choice", [None, "auto", "none"])
def test_no_tools_is_the_same_as_an_empty_list(choice):
    given = decode(tools=[], tool_choice=choice).dialogue
    assert given.tools == ()
    assert given.turns == decode().dialogue.turns


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"type": "text"}, ResponseFormat()),
        ({"type": "json_object"}, ResponseFormat("json_object")),
        (
            {"type": "json_schema", "json_schema": {"name": "r", "schema": {}, "strict": True}},
            ResponseFormat("json_schema", "{}", name="r", strict=True),
        ),
        ({"type": "regex", "regex": "a+"}, ResponseFormat("regex", "a+")),
        ({"type": "ebnf", "ebnf": "root ::= x"}, ResponseFormat("grammar", "root ::= x")),
        ({"type": "choice", "choices": ["a", "b"]}, ResponseFormat("choice", choices=("a", "b"))),
    ],
)
def test_response_format(given, wanted):
    assert decode(response_format=given).dialogue.response_format == wanted


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ({"type": "json_schema"}, "response_format.json_schema.schema"),
        ({"type": "json_schema", "json_schema": {"name": "r"}}, None),
        ({"type": "yaml"}, "response_format.type"),
        ({}, "response_format.type"),
        ({"type": "regex"}, "response_format.regex"),
    ],
)
def test_bad_response_formats(given, param):
    error = refused(response_format=given)
    assert error.param == (param or "response_format.json_schema.schema")


def test_structured_outputs():
    wanted = ResponseFormat("regex", "a+")
    assert decode(structured_outputs={"regex": "a+"}).dialogue.response_format == wanted
    schema = decode(structured_outputs={"json": {"a": 1}}).dialogue.response_format
    assert schema == ResponseFormat("json_schema", '{"a": 1}')
    assert refused(structured_outputs={}).param == "structured_outputs"


@pytest.mark.parametrize(
    ("stop", "strings"), [("END", ("END",)), (["a", "b"], ("a", "b")), ([], ()), (None, ())]
)
def test_stop(stop, strings):
    assert decode(stop=stop).stopping.strings == strings


@pytest.mark.parametrize("stop", ["", [""], ["a", ""], 3, [None]])
def test_bad_stop(stop):
    assert (refused(stop=stop).param or "").startswith("stop")


def test_more_stop_strings_than_openai_allows_are_all_kept():
    assert len(decode(stop=[f"s{k}" for k in range(9)]).stopping.strings) == 9


def test_max_completion_tokens_wins():
    assert decode(max_tokens=9, max_completion_tokens=4).stopping.max_tokens == 4
    assert decode(max_tokens=9).stopping.max_tokens == 9
    assert decode().stopping.max_tokens is None


@pytest.mark.parametrize("seed", [0, -1, 11, -(2**63), 2**63 - 1, None])
def test_seeds_are_int64(seed):
    assert decode(seed=seed).sampling.seed == seed


def test_sampling_fields_reach_the_call():
    sampling = decode(
        temperature=0,
        top_p=0.5,
        top_k=-1,
        min_p=0.1,
        frequency_penalty=-2,
        presence_penalty=2,
        repetition_penalty=1.1,
        logit_bias={"7": -100, "8": 1.5},
        allowed_token_ids=[1, 2],
    ).sampling
    assert (sampling.temperature, sampling.top_p, sampling.top_k) == (0, 0.5, 0)
    assert (sampling.min_p, sampling.repetition_penalty) == (0.1, 1.1)
    assert (sampling.frequency_penalty, sampling.presence_penalty) == (-2, 2)
    assert (sampling.logit_bias, sampling.allowed_ids) == ({7: -100.0, 8: 1.5}, (1, 2))


def test_stopping_fields_reach_the_call():
    stopping = decode(
        min_tokens=2, stop_token_ids=[7], ignore_eos=True, include_stop_str_in_output=True
    ).stopping
    assert (stopping.min_tokens, stopping.ids) == (2, (7,))
    assert stopping.ignore_eos
    assert stopping.include_stop


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("temperature", (-0.1, 2.1, "1", True)),
        ("top_p", (0, 1.1)),
        ("top_k", (-2, 1.5)),
        ("min_p", (-0.1, 1.1)),
        ("frequency_penalty", (-2.1, 2.1)),
        ("presence_penalty", (-2.1, 2.1)),
        ("repetition_penalty", (0, -1)),
        ("seed", (2**63, -(2**63) - 1, 1.5)),
        ("max_tokens", (0, -1, "4")),
        ("max_completion_tokens", (0, -1)),
        ("min_tokens", (-1,)),
        ("n", (0, 129, 1.5)),
        ("top_logprobs", (-1, 21)),
        ("stop_token_ids", (["x"], [-1], 5)),
        ("logit_bias", ({"a": 1}, {"-1": 1}, {"1": 101}, {"1": None}, [])),
        ("model", ("", None, 3)),
        ("messages", ([], None, "x", [3])),
        ("reasoning_effort", ("extreme", 3)),
        ("stream", ("yes", 1)),
        ("tools", ({}, [3], [{"type": "function"}], [{"type": 3}])),
        ("modalities", (["audio"],)),
    ],
)
def test_values_out_of_range_are_refused_by_name(field, values):
    for value in values:
        error = refused(**{"logprobs": True, field: value})
        assert (error.param or "").startswith(field)
        assert field in error.message


def test_logprobs():
    assert decode(logprobs=True).output.logprobs == 0
    assert decode(logprobs=True, top_logprobs=0).output.logprobs == 0
    assert decode(logprobs=True, top_logprobs=3).output.logprobs == 3
    assert decode(logprobs=False).output.logprobs is None
    assert refused(top_logprobs=2).param == "top_logprobs"


def test_usage_in_streams_is_sent_when_asked_for():
    assert decode().output.usage
    assert not decode(stream=True).output.usage
    assert not decode(stream=True, stream_options={"include_usage": False}).output.usage
    assert decode(stream=True, stream_options={"include_usage": True}).output.usage
    assert refused(stream_options={"include_usage": True}).param == "stream_options"


def test_counts_along_the_way_are_asked_for() -> None:
    options = {"include_usage": True, "continuous_usage_stats": True, "x": 1}
    call = decode(stream=True, stream_options=options)
    assert call.output.continuous_usage
    assert call.output.usage
    assert call.ignored == ("stream_options.x",)


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"reasoning_effort": "low"}, ReasoningSettings(effort="low")),
        ({"reasoning_effort": "none"}, ReasoningSettings("off")),
        ({"thinking": True}, ReasoningSettings("on")),
        ({"thinking": {"type": "disabled"}}, ReasoningSettings("off")),
        (
            {"thinking": {"type": "enabled", "budget_tokens": 9}},
            ReasoningSettings("on", budget=9),
        ),
        ({"enable_thinking": False, "reasoning_effort": "high"}, ReasoningSettings("off", "high")),
        ({"thinking_token_budget": 7}, ReasoningSettings(budget=7)),
    ],
)
def test_reasoning_settings(fields, wanted):
    assert decode(**fields).dialogue.reasoning == wanted


def test_identity_and_hints():
    call = decode(user="u", session_id="s", prompt_cache_key="k", cache_salt="c", priority=3)
    assert call.identity == Identity(user="u", session="s")
    assert call.hints == Hints(priority=3, cache_salt="c")
    other = decode(safety_identifier="u", prompt_cache_key="k")
    assert other.identity == Identity(user="u", session="k")


def test_chat_templates_of_clients_are_refused():
    assert refused(chat_template="{{ 1 }}").param == "chat_template"
    for name in ("chat_template", "messages", "tools", "tokenize", "add_generation_prompt"):
        error = refused(chat_template_kwargs={name: 1})
        assert error.param == f"chat_template_kwargs.{name}"
    args = {"enable_thinking": True, "custom": [1]}
    assert decode(chat_template_kwargs=args).dialogue.template_args == args


def test_continuing_the_last_message():
    final = {"role": "assistant", "content": "The answer"}
    fields = {"messages": [USER, final], "continue_final_message": True}
    assert decode(**fields).dialogue.continue_final
    assert refused(**fields, add_generation_prompt=True).param == "continue_final_message"
    assert refused(continue_final_message=True).param == "continue_final_message"


@pytest.mark.parametrize("field", ["functions", "function_call"])
def test_what_tools_replaced_is_refused(field):
    assert refused(**{field: []}).param == field


def test_what_nothing_uses_is_listed_and_kept():
    call = decode(
        store=True,
        metadata={"a": "b"},
        service_tier="flex",
        brand_new=[1],
        unset=None,
        messages=[{**USER, "mood": "calm"}, {"role": "user", "content": [_cached("x")]}],
    )
    assert call.ignored == (
        "messages[].mood",
        "messages[].content[].cache_control",
        "store",
        "metadata",
        "service_tier",
        "brand_new",
    )
    assert call.unknown == call.ignored
    assert decode(add_generation_prompt=False).unknown == ()
    assert call.extra["brand_new"] == [1]
    assert call.dialogue.turns[0].extra == {"mood": "calm"}
    assert call.dialogue.turns[1].parts[0].extra == {"cache_control": {"type": "ephemeral"}}


def _cached(text):
    return {"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}


def test_every_optional_field_takes_null():
    from tokenwire.plugins.protocols.chat_completions.schema import REQUEST_FIELDS

    nulls = dict.fromkeys(sorted(REQUEST_FIELDS - {"model", "messages"}))
    assert decode(**nulls) == decode()


@pytest.mark.parametrize(
    "headers",
    [{}, {"content-type": "text/plain"}, {"content-type": "application/json; charset=utf-8"}],
)
def test_any_content_type_is_read(headers):
    body = json.dumps({"model": "m", "messages": [USER]}).encode()
    assert decode_bytes(body, headers) == decode()


@pytest.mark.parametrize("place", ["arguments", "parameters", "schema", "content"])
def test_nesting_is_limited_wherever_it_hides(place):
    called = {"id": "c", "function": {"name": "f", "arguments": "DEEP"}}
    schema = {"type": "json_schema", "json_schema": {"schema": {"a": "HERE"}}}
    fields = {
        "arguments": {"messages": [{"role": "assistant", "tool_calls": [called]}]},
        "parameters": {"tools": [{"function": {"name": "f", "parameters": {"a": "HERE"}}}]},
        "schema": {"response_format": schema},
        "content": {"messages": [{"role": "user", "content": "HERE"}]},
    }[place]
    deep = "[" * 100_000 + "]" * 100_000
    body = json.dumps({"model": "m", "messages": [USER]} | fields)
    with pytest.raises(RequestError) as caught:
        decode_bytes(body.replace('"HERE"', deep).replace("DEEP", deep).encode())
    assert caught.value.code == "too_deep"


def test_nul_and_awkward_text_pass_whole():
    text = "before\0after \u2028 <|im_end|> 潮"
    assert decode(messages=[{"role": "user", "content": text}]).dialogue.turns[0].parts == (
        Text(text),
    )


@given(calls())
def test_the_client_is_the_inverse(call):
    body = CLIENT.request(call).body
    wanted = call.output.stream
    got = decode_bytes(body)
    assert got.dialogue == call.dialogue
    assert (got.model, got.output.stream) == (call.model, wanted)


@pytest.mark.parametrize(
    "fields",
    [
        {"tools": [TOOL, CUSTOM], "tool_choice": {"type": "custom", "custom": {"name": "g"}}},
        {"temperature": 0, "seed": -1, "logit_bias": {"7": 1}, "stop": ["a"], "min_tokens": 1},
        {"logprobs": True, "top_logprobs": 2, "n": 2, "user": "u", "priority": -1, "store": True},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "r", "schema": {}}}},
        {"thinking": {"type": "enabled", "budget_tokens": 9}, "reasoning_effort": "low"},
        {"stream": True, "stream_options": {"include_usage": True}},
        {"tools": [TOOL], "tool_choice": "none", "parallel_tool_calls": False},
        {"messages": [{"role": "user", "content": [_cached("x")], "mood": "calm"}]},
    ],
)
def test_what_was_read_can_be_written_back(fields):
    call = decode(**fields)
    assert decode_bytes(CLIENT.request(call).body) == call


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(-1e9, 1e9) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(("type", "text", "function", "name", "role", "content", "url")), inner
        )
    ),
    max_leaves=8,
)
FIELDS = (
    "messages",
    "tools",
    "tool_choice",
    "response_format",
    "structured_outputs",
    "stop",
    "logit_bias",
    "stream_options",
    "thinking",
    "chat_template_kwargs",
    "modalities",
    "reasoning_effort",
    "seed",
    "max_tokens",
    "n",
)


@given(st.dictionaries(st.sampled_from(FIELDS), json_values, max_size=3))
def test_fuzzed_fields_give_calls_or_request_errors(fields):
    try:
        body = json.dumps({"model": "m", "messages": [USER]} | fields).encode()
        call = decode_bytes(body)
    except RequestError as error:
        reply = CODEC.encode_error(error, "req_1")
        assert reply.status == 400
    else:
        assert call.model == "m"


@given(json_values, json_values)
def test_fuzzed_messages_give_calls_or_request_errors(first, second):
    for messages in ([first], [USER, second], [{"role": "assistant", "tool_calls": [first]}]):
        with suppress(RequestError):
            decode_bytes(json.dumps({"model": "m", "messages": messages}).encode())


@pytest.mark.parametrize(
    "thought",
    [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "thinking", "thinking": [{"type": "text", "text": "h"}, {"text": "m"}]},
        {"type": "reasoning", "reasoning": "hm"},
        {"type": "reasoning", "text": "hm"},
    ],
)
def test_reasoning_in_the_content_of_an_answer_is_reasoning(thought) -> None:
    said = {"type": "output_text", "text": "four", "annotations": []}
    answer = {"role": "assistant", "content": [thought, said]}
    asked = {"role": "user", "content": [{"type": "input_text", "text": "two?"}]}
    turns = messages(asked, answer)
    assert [part.text for part in turns[0].parts] == ["two?"]
    assert [(type(part), part.text) for part in turns[1].parts] == [
        (Reasoning, "hm"),
        (Text, "four"),
    ]
    answer["reasoning_content"] = "hm"
    assert len(messages(answer)[0].parts) == 2


@pytest.mark.parametrize("thought", [{"type": "thinking"}, {"type": "thinking", "thinking": [5]}])
def test_reasoning_that_is_no_text_is_refused(thought) -> None:
    with pytest.raises(RequestError, match="must be a string"):
        messages({"role": "assistant", "content": [thought]})


def test_a_client_does_not_think_aloud() -> None:
    thought = {"role": "user", "content": [{"type": "thinking", "thinking": "hm"}]}
    with pytest.raises(RequestError, match="type must be text"):
        messages(thought)
