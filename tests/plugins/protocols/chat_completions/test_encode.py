"""Replies: the order and fields of chunks, the unary body, errors, and the rules between them."""

from __future__ import annotations

import json
from math import inf, nan

import msgspec
import pytest
from msgspec.structs import replace
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from tokenwire.core.call import Call, Output
from tokenwire.core.dialogue import Dialogue, Text, ToolChoice, ToolSpec, Turn
from tokenwire.core.errors import CodecStateError, ErrorKind, ReplyError, RequestError, ServiceError
from tokenwire.core.events import (
    Failed,
    Finished,
    Logprobs,
    PartDelta,
    PartEnd,
    PartStart,
    Started,
    TokenLogprob,
    Usage,
)
from tokenwire.core.testing.codec_probe import reading
from tokenwire.core.testing.strategies import Shape, cuts, event_streams, sample
from tokenwire.core.wire import SseReader, Stamp
from tokenwire.plugins.protocols.chat_completions.client import ChatClient
from tokenwire.plugins.protocols.chat_completions.codec import ChatCompletions, Settings

STAMP = Stamp("req_1", 1_700_000_000.9, bytes(range(16)))
read = reading(ChatClient())
START, END = Started(9, 4, "0123456789abcdef" * 4), Usage(9, 5, 4, reasoning_tokens=2)


def call(*, tools=False, stream=True, choice="auto", **output) -> Call:
    specs = (ToolSpec("f"), ToolSpec("g")) if tools else ()
    asked = Dialogue((Turn("user", (Text("x"),)),), tools=specs, tool_choice=ToolChoice(choice))
    return Call("m", asked, output=Output(stream=stream, **output))


def run(asked, *events, settings=None) -> bytes:
    reply = ChatCompletions(settings or Settings()).reply(asked, STAMP)
    return b"".join(reply.push(event) for event in (START, *events))


def chunks(asked, *events, settings=None) -> list:
    messages = SseReader().push(run(asked, *events, settings=settings))
    return [json.loads(m.data) if m.data != "[DONE]" else m.data for m in messages]


def deltas(*args, **kwargs) -> list:
    found = chunks(*args, **kwargs)
    return [c["choices"][0]["delta"] for c in found if isinstance(c, dict) and c.get("choices")]


def body(asked, *events, settings=None) -> dict:
    return json.loads(
        run(replace(asked, output=replace(asked.output, stream=False)), *events, settings=settings)
    )


def text(*pieces, choice=0):
    return (PartStart(choice, "text"), *(PartDelta(choice, p) for p in pieces), PartEnd(choice))


def thought(*pieces):
    return (PartStart(0, "reasoning"), *(PartDelta(0, p) for p in pieces), PartEnd(0))


def tool(name, *pieces, complete=True, **start):
    deltas = (PartDelta(0, piece) for piece in pieces)
    return (PartStart(0, "tool_call", name, **start), *deltas, PartEnd(0, complete))


def ended(reason="stop", matched=None):
    return Finished(0, reason, matched), END


def test_the_order_of_chunks():
    got = chunks(call(), *text("a", "b"), *ended())
    assert [c if c == "[DONE]" else c["choices"] for c in got] == [
        [_choice({"role": "assistant", "content": ""})],
        [_choice({"content": "a"})],
        [_choice({"content": "b"})],
        [_choice({}, "stop")],
        [],
        "[DONE]",
    ]


def _choice(delta, reason=None):
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}


def test_what_all_chunks_share():
    *got, done = chunks(call(), *text("a"), *ended())
    assert done == "[DONE]"
    for chunk in got:
        assert chunk["id"] == "chatcmpl-req_1"
        assert chunk["object"] == "chat.completion.chunk"
        assert (chunk["created"], chunk["model"]) == (1_700_000_000, "m")
        assert chunk["system_fingerprint"] == "fp_0123456789ab"


def test_an_unknown_fingerprint_is_left_out():
    for stream in (True, False):
        reply = ChatCompletions().reply(call(stream=stream), STAMP)
        events = (replace(START, fingerprint=""), *text("a"), *ended())
        assert b"fingerprint" not in b"".join(reply.push(event) for event in events)


def test_usage_comes_last_and_only_when_asked_for():
    *rest, usage, _ = chunks(call(usage=True), *text("a"), *ended())
    assert usage["choices"] == []
    assert usage["usage"] == {
        "prompt_tokens": 9,
        "completion_tokens": 5,
        "total_tokens": 14,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
    assert all(chunk["usage"] is None for chunk in rest)
    *chunks_, done = chunks(call(usage=False), *text("a"), *ended())
    assert done == "[DONE]"
    assert all(chunk["choices"] and "usage" not in chunk for chunk in chunks_)
    assert body(call(usage=True), *text("a"), *ended())["usage"]["total_tokens"] == 14


def test_the_unary_body():
    got = body(call(), *thought("hm"), *text("a", "b"), *ended("stop_sequence", "END"))
    assert got["choices"] == [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": "ab",
                "refusal": None,
                "reasoning_content": "hm",
            },
            "logprobs": None,
            "finish_reason": "stop",
            "stop_reason": "END",
        }
    ]
    assert (got["object"], got["system_fingerprint"]) == ("chat.completion", "fp_0123456789ab")


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        ("stop", "stop"),
        ("stop_sequence", "stop"),
        ("length", "length"),
        ("context_length", "length"),
        ("tool_calls", "tool_calls"),
        ("cancelled", "length"),
    ],
)
def test_finish_reasons(reason, word):
    assert body(call(), *text("a"), *ended(reason))["choices"][0]["finish_reason"] == word
    got = chunks(call(), *text("a"), *ended(reason))
    assert [c["choices"][0]["finish_reason"] for c in got if c != "[DONE]" and c["choices"]] == [
        None,
        None,
        word,
    ]


def test_deltas_of_calls():
    """Index always; id, type and name with a call's first delta only."""
    events = (*tool("f", '{"a"', ":1}"), *tool("g", "{}", call_id="functions.g:1"))
    (role, *got, last) = deltas(call(tools=True), *events, *ended("tool_calls"))
    assert role == {"role": "assistant", "content": None}
    minted = f"call_{STAMP.token(1)}"
    assert [delta["tool_calls"] for delta in got] == [
        [_first(0, minted, "f")],
        [{"index": 0, "function": {"arguments": '{"a"'}}],
        [{"index": 0, "function": {"arguments": ":1}"}}],
        [_first(1, "functions.g:1", "g")],
        [{"index": 1, "function": {"arguments": "{}"}}],
    ]
    assert last == {}


def _first(index, id_, name):
    function = {"name": name, "arguments": ""}
    return {"index": index, "id": id_, "type": "function", "function": function}


def test_calls_in_the_unary_body_have_the_same_ids():
    events = (*tool("f", "{}"), *tool("f", '{"a":1}'), *ended("tool_calls"))
    calls = body(call(tools=True), *events)["choices"][0]["message"]["tool_calls"]
    assert [c["id"] for c in calls] == [f"call_{STAMP.token(k)}" for k in (1, 2)]
    assert [c["function"]["arguments"] for c in calls] == ["{}", '{"a":1}']


def test_call_ids_do_not_depend_on_how_choices_are_interleaved():
    def ids(*events):
        found = json.loads(run(call(stream=False, n=2), *events, END))["choices"]
        return [choice["message"]["tool_calls"][0]["id"] for choice in found]

    first = (PartStart(0, "tool_call", "f"), PartEnd(0), Finished(0, "tool_calls"))
    second = (PartStart(1, "tool_call", "f"), PartEnd(1), Finished(1, "tool_calls"))
    assert ids(*first, *second) == ids(*second, *first)
    assert len(set(ids(*first, *second))) == 2


def test_a_call_without_arguments_has_an_empty_object():
    events = (*tool("f"), *ended("tool_calls"))
    got = deltas(call(tools=True), *events)
    texts = [d["tool_calls"][0]["function"]["arguments"] for d in got if "tool_calls" in d]
    assert "".join(texts) == "{}"
    message = body(call(tools=True), *events)["choices"][0]["message"]
    assert message["tool_calls"][0]["function"]["arguments"] == "{}"


@pytest.mark.parametrize("pieces", [(), ('{"room": "at',)])
def test_a_call_that_was_cut_off_is_never_completed(pieces):
    events = (*tool("f", *pieces, complete=False), *ended("length"))
    choice = body(call(tools=True), *events)["choices"][0]
    function = choice["message"]["tool_calls"][0]["function"]
    assert function["arguments"] == "".join(pieces)
    assert choice["finish_reason"] == "length"


def test_custom_calls_have_input():
    events = (*tool("g", "free ", "text", custom=True), *ended("tool_calls"))
    (entry,) = body(call(tools=True), *events)["choices"][0]["message"]["tool_calls"]
    assert entry == {
        "id": f"call_{STAMP.token(1)}",
        "type": "custom",
        "custom": {"name": "g", "input": "free text"},
    }
    first, second, _ = [d["tool_calls"][0] for d in deltas(call(tools=True), *events)[1:4]]
    assert first["custom"] == {"name": "g", "input": ""}
    assert second == {"index": 0, "custom": {"input": "free "}}


BLANK_CASES = [
    # What comes, and the content that is left of it.
    ((*text("\n\n"), *tool("f", "{}"), *text("\n")), None),
    ((*text("\n", "\n"), *tool("f", "{}")), None),
    ((*text("I look. \n"), *tool("f", "{}"), *text("\n")), "I look. \n"),
    ((*text("\n\n", "  a"), *tool("f", "{}")), "\n\n  a"),
    ((*tool("f", "{}"), *text("\n"), *tool("g", "{}"), *text(" b")), " b"),
    ((*thought("hm"), *text("\n"), *tool("f", "{}")), None),
    (text("\n\n"), "\n\n"),
    ((*text("\n"), *thought("hm"), *text("4")), "\n4"),
    ((), None),
    (text(" " * 65), " " * 65),
]


@pytest.mark.parametrize(("events", "content"), BLANK_CASES)
def test_whitespace_beside_calls_is_no_content(events, content):
    asked = call(tools=True)
    has_calls = any(isinstance(e, PartStart) and e.kind == "tool_call" for e in events)
    end = ended("tool_calls" if has_calls else "stop")
    assert body(asked, *events, *end)["choices"][0]["message"]["content"] == content
    pieces = [d["content"] for d in deltas(asked, *events, *end) if d.get("content")]
    assert "".join(pieces) == (content or "")


@pytest.mark.parametrize("asked", [call(), call(tools=True, choice="none")])
def test_whitespace_is_sent_at_once_where_no_call_can_come(asked):
    assert {"content": "\n"} in deltas(asked, *text("\n", "a"), *ended())[:2]


@pytest.mark.parametrize("asked", [call(), call(tools=True)])
def test_no_delta_is_empty_but_the_last(asked):
    for events in sample(event_streams(Shape(custom=True)), 40):
        reply = ChatCompletions().reply(asked, STAMP)
        data = b"".join(reply.push(event) for event in events)
        seen = [json.loads(m.data) for m in SseReader().push(data) if m.data != "[DONE]"]
        *rest, last = [c["choices"][0]["delta"] for c in seen if c["choices"]]
        assert last == {}
        assert all(rest)
        for delta in rest[1:]:
            assert delta.keys() <= {"content", "reasoning_content", "tool_calls"}
            assert delta.get("content") != ""


@pytest.mark.parametrize(
    ("field", "names"),
    [
        ("reasoning_content", ("reasoning_content",)),
        ("reasoning", ("reasoning",)),
        ("both", ("reasoning_content", "reasoning")),
    ],
)
def test_the_names_of_reasoning(field, names):
    settings = Settings(reasoning_field=field)
    events = (*thought("ab", "cd"), *text("e"), *ended())
    got = deltas(call(), *events, settings=settings)
    assert got[1] == dict.fromkeys(names, "ab")
    assert got[2] == dict.fromkeys(names, "cd")
    assert got[3] == {"content": "e"}
    message = body(call(), *events, settings=settings)["choices"][0]["message"]
    assert {name: message[name] for name in names} == dict.fromkeys(names, "abcd")


def token(piece, logprob=-0.5, *top):
    return TokenLogprob(7, piece, piece.encode(), logprob, top)


def test_logprobs_stand_with_the_text_of_their_tokens():
    events = (
        PartStart(0, "text"),
        Logprobs(0, (token("a"), token("b", -1.5, token("b", -1.5), token("c", -2.0)))),
        PartDelta(0, "ab"),
        PartDelta(0, "held"),
        PartEnd(0),
        *ended(),
    )
    got = chunks(call(logprobs=2), *events)
    entries = [c["choices"][0]["logprobs"] for c in got if c != "[DONE]" and c["choices"]]
    field = {
        "content": [
            {"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": []},
            {
                "token": "b",
                "logprob": -1.5,
                "bytes": [98],
                "top_logprobs": [
                    {"token": "b", "logprob": -1.5, "bytes": [98]},
                    {"token": "c", "logprob": -2.0, "bytes": [99]},
                ],
            },
        ],
        "refusal": None,
    }
    assert entries == [None, field, None, None]
    assert body(call(logprobs=2), *events)["choices"][0]["logprobs"] == field


def test_logprobs_of_partial_characters_keep_their_bytes():
    pieces = (b"\xf0\x9f", b"\x8c\x8a")
    tokens = tuple(TokenLogprob(k, "\ufffd", data, -1.0) for k, data in enumerate(pieces))
    events = (PartStart(0, "text"), Logprobs(0, tokens), PartDelta(0, "🌊"), PartEnd(0), *ended())
    entries = body(call(logprobs=0), *events)["choices"][0]["logprobs"]["content"]
    assert bytes(b for entry in entries for b in entry["bytes"]).decode() == "🌊"


@pytest.mark.parametrize("value", [-inf, nan, -1e5])
def test_what_json_cannot_hold_has_a_floor(value):
    events = (PartStart(0, "text"), Logprobs(0, (token("a", value, token("b", value)),)))
    entry = body(call(logprobs=1), *events, PartDelta(0, "a"), PartEnd(0), *ended())
    (got,) = entry["choices"][0]["logprobs"]["content"]
    assert (got["logprob"], got["top_logprobs"][0]["logprob"]) == (-9999.0, -9999.0)


def test_logprobs_are_of_the_content_only():
    events = (
        PartStart(0, "reasoning"),
        Logprobs(0, (token("hm"),)),
        PartDelta(0, "hm"),
        PartEnd(0),
        PartStart(0, "text"),
        Logprobs(0, (token("a"),)),
        PartDelta(0, "a"),
        PartEnd(0),
        *ended(),
    )
    entries = body(call(logprobs=0), *events)["choices"][0]["logprobs"]["content"]
    assert [entry["token"] for entry in entries] == ["a"]


def test_choices_are_interleaved_and_told_apart():
    events = (
        PartStart(1, "text"),
        PartDelta(1, "c"),
        PartStart(0, "text"),
        PartDelta(0, "a"),
        PartEnd(1),
        Finished(1, "stop"),
        PartDelta(0, "b"),
        PartEnd(0),
        Finished(0, "length"),
        END,
    )
    got = chunks(call(n=2), *events)
    seen = [(c["choices"][0]["index"], c["choices"][0]["delta"]) for c in got[:-2]]
    assert seen == [
        (0, {"role": "assistant", "content": ""}),
        (1, {"role": "assistant", "content": ""}),
        (1, {"content": "c"}),
        (0, {"content": "a"}),
        (1, {}),
        (0, {"content": "b"}),
        (0, {}),
    ]
    choices = body(call(n=2), *events)["choices"]
    assert [c["message"]["content"] for c in choices] == ["ab", "c"]
    assert [c["finish_reason"] for c in choices] == ["length", "stop"]


def test_a_failure_is_one_error_event_and_the_end():
    data = run(
        call(), PartStart(0, "text"), PartDelta(0, "par"), Failed(ErrorKind.INTERNAL, "lost")
    )
    *rest, last = SseReader().push(data)
    assert json.loads(last.data) == {
        "error": {"message": "lost", "type": "api_error", "param": None, "code": "internal_error"}
    }
    assert all(json.loads(m.data)["choices"][0]["finish_reason"] is None for m in rest)
    assert b"[DONE]" not in data


def test_a_unary_reply_takes_no_failure():
    with pytest.raises(CodecStateError):
        run(call(stream=False), Failed(ErrorKind.INTERNAL, "lost"))


def test_no_text_breaks_a_line():
    """JSON escapes CR and LF; the rest are breaks to readers that split on Unicode line ends."""
    awkward = "data: [DONE]\n\ndata: x\r\n\u2028\u2029\u0085\x0b\x0c\x1cend"
    data = run(call(), *text(awkward, awkward), *thought(awkward), *tool("f", awkward), *ended())
    lines = data.decode().splitlines()
    assert all(not line or line.startswith("data: ") for line in lines)
    got = [json.loads(line[6:]) for line in lines if line and line != "data: [DONE]"]
    assert [c["choices"][0]["delta"].get("content") for c in got[1:3]] == [awkward, awkward]
    failed = run(call(), Failed(ErrorKind.INTERNAL, awkward)).decode().splitlines()
    assert all(not line or line.startswith("data: ") for line in failed)


def test_keepalive_is_a_comment():
    reply = ChatCompletions().reply(call(), STAMP)
    messages = SseReader().push(reply.keepalive() + b"\n")
    assert [m.comment for m in messages] == ["keep-alive"]
    assert reply.content_type == "text/event-stream"


def test_the_state_of_a_stream_is_small():
    reply = ChatCompletions().reply(call(tools=True), STAMP)
    for event in (replace(START, fingerprint="f" * 64), *tool("f", '{"a":1}'), *text("\n\n")):
        reply.push(event)
    assert len(msgspec.msgpack.encode(reply.save())) < 300


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("tools", [True, False])
def test_official_models_accept_every_answer(stream, tools):
    shape = Shape(choices=2, logprobs=True, call_ids=True, details=True)
    asked = call(tools=tools, stream=stream, n=2, logprobs=2)
    for events in sample(event_streams(shape), 40):
        reply = ChatCompletions().reply(asked, STAMP)
        data = b"".join(reply.push(event) for event in events)
        if not stream:
            ChatCompletion.model_validate_json(data, strict=True)
            continue
        for message in SseReader().push(data):
            if message.data != "[DONE]":
                ChatCompletionChunk.model_validate_json(message.data, strict=True)


def test_an_answer_sent_back_is_accepted_as_history():
    events = (*thought("hm"), *text("I look."), *tool("f", '{"a": 1}'), *ended("tool_calls"))
    message = body(call(tools=True), *events)["choices"][0]["message"]
    result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "3"}
    history = [{"role": "user", "content": "x"}, message, result]
    from tokenwire.core.wire import HttpRequest

    sent = json.dumps({"model": "m", "messages": history}).encode()
    got = ChatCompletions().decode(HttpRequest("POST", "/v1/chat/completions", body=sent))
    assert [turn.role for turn in got.dialogue.turns] == ["user", "assistant", "tool"]
    assert [type(part).__name__ for part in got.dialogue.turns[1].parts] == [
        "Reasoning",
        "Text",
        "ToolCall",
    ]
    assert got.ignored == ()


def test_the_reader_takes_any_cut_with_comments_between():
    asked = call()
    reply = ChatCompletions().reply(asked, STAMP)
    data = b"".join(
        reply.push(event) + reply.keepalive() for event in (START, *text("a", "潮"), *ended())
    )
    whole = read(asked, [data])
    for pieces in sample(cuts(data), 30):
        assert read(asked, pieces) == whole


@pytest.mark.parametrize("kind", list(ErrorKind))
def test_every_error_has_the_envelope(kind):
    error = (
        RequestError("why", kind=kind, param="a.b")
        if kind.status < 500
        else ServiceError(kind, "why", retry_after=2.2)
    )
    reply = ChatCompletions().encode_error(error, "req_1")
    got = json.loads(reply.body)["error"]
    assert got.keys() == {"message", "type", "param", "code"}
    assert got["message"] == "why"
    assert reply.content_type == "application/json"
    assert reply.status == (503 if kind is ErrorKind.OVERLOADED else kind.status)
    if kind.status >= 500:
        assert reply.headers["retry-after"] == "3"


def test_the_words_that_clients_look_for():
    def error(kind, **fields):
        reply = ChatCompletions().encode_error(RequestError("x", kind=kind, **fields), "req_1")
        found = json.loads(reply.body)["error"]
        return reply.status, found["type"], found["code"], found["param"]

    invalid = "invalid_request_error"
    long = (400, invalid, "context_length_exceeded", "messages")
    assert error(ErrorKind.CONTEXT_LENGTH) == long
    assert error(ErrorKind.MODEL_NOT_FOUND) == (404, invalid, "model_not_found", "model")
    assert error(ErrorKind.RATE_LIMITED)[:3] == (429, "rate_limit_error", "rate_limit_exceeded")
    assert error(ErrorKind.INVALID_REQUEST, param="n", code="x") == (400, invalid, "x", "n")


@pytest.mark.parametrize(
    "data",
    [b"\xff", b"[]", b"<html>", b'{"choices":[{"index":0,"message":{},"finish_reason":"melted"}]}'],
)
def test_what_is_no_reply_is_refused(data):
    with pytest.raises(ReplyError, match="no reply of Chat Completions"):
        read(call(stream=False), [data])
    with pytest.raises(ReplyError, match="no reply of Chat Completions"):
        read(call(), [b"data: ", data.replace(b"message", b"delta"), b"\n\n"])
