"""The inverse: what the codec writes is read back; what the client writes decodes the same."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.plugins.protocols.messages.plain import plain
from tests.plugins.protocols.messages.reading import reader_of
from tokenwire.core.call import (
    CacheMarker,
    Call,
    Hints,
    Identity,
    Output,
    Sampling,
    Stopping,
)
from tokenwire.core.dialogue import (
    Audio,
    Dialogue,
    Document,
    Image,
    Opaque,
    Reasoning,
    ReasoningSettings,
    ResponseFormat,
    Text,
    ToolCall,
    ToolChoice,
    ToolResult,
    ToolSpec,
    Turn,
)
from tokenwire.core.errors import ErrorKind, ReplyError
from tokenwire.core.events import Failed, Finished, PartDelta, PartEnd, PartStart, Started, Usage
from tokenwire.core.fold import fold
from tokenwire.core.testing.strategies import Shape, cuts, dialogues, event_streams
from tokenwire.plugins.protocols.messages.client import request

SHAPE = Shape(
    reasons=("stop", "stop_sequence", "length", "context_length", "cancelled"),
    cut_calls=True,
    details=True,
)


def read_stream(data):
    return reader_of(stream=True).push(data)


def read_body(data):
    reader = reader_of(stream=False)
    assert reader.push(data) == []
    return reader.flush()


@pytest.mark.parametrize("data", [b"", b"\xff", b"{}", b"[]", b"<html>", b'{"type":"ping"}'])
def test_what_is_no_reply_is_refused(data):
    with pytest.raises(ReplyError, match="no reply of Messages"):
        read_body(data)
    if data:
        with pytest.raises(ReplyError, match="no reply of Messages"):
            read_stream(b"data: " + data.replace(b"ping", b"pong") + b"\n\n")


def test_a_body_that_has_not_ended_is_no_whole_reply(encode):
    body = encode([Started(1), Finished(0, "stop"), Usage(1, 1)], stream=False)
    with pytest.raises(ReplyError, match="stop_reason is null"):
        read_body(body.replace(b'"end_turn"', b"null"))


def wire_of(answer):
    """The answer as this wire can say it: minted ids, no fingerprint, cached as at the end."""
    choice = answer.choices[0]
    parts = tuple(replace(part, call_id=None) for part in choice.parts)
    prompt, cached = answer.usage.prompt_tokens, answer.usage.cached_tokens
    return (
        parts,
        choice.reason,
        choice.matched,
        prompt,
        cached,
        answer.usage.completion_tokens,
        answer.usage.reasoning_tokens,
    )


@given(event_streams(SHAPE))
def test_streams_are_read_back(encode, events):
    got = read_stream(encode(events))
    assert wire_of(fold(got)) == wire_of(fold(events))
    assert got[0] == replace(events[0], fingerprint="")
    assert got[-1] == events[-1]


@given(st.data())
def test_any_cutting_is_read_the_same(encode, data):
    stream = encode(data.draw(event_streams(SHAPE)))
    reader = reader_of(stream=True)
    pieces = [event for piece in data.draw(cuts(stream)) for event in reader.push(piece)]
    assert pieces == read_stream(stream)
    reader = reader_of(stream=True)
    assert [e for byte in stream for e in reader.push(bytes((byte,)))] == read_stream(stream)


@given(event_streams(replace(SHAPE, cut_calls=False)))
def test_unary_bodies_say_the_same(encode, events):
    streamed = wire_of(fold(read_stream(encode(events))))
    unary = wire_of(fold(read_body(encode(events, stream=False))))
    assert unary[1:] == streamed[1:]
    for ours, theirs in zip(unary[0], streamed[0], strict=True):
        # Why: an object is all that a unary body can say of arguments that were left out.
        assert ours == replace(theirs, text=theirs.text or "{}") if theirs.name else ours == theirs


@pytest.mark.parametrize("kind", ErrorKind)
def test_failures_are_read_back(encode, kind):
    events = [Started(1), PartStart(0, "text"), PartDelta(0, "a"), Failed(kind, "prompt is x")]
    failed = read_stream(encode(events))[-1]
    assert isinstance(failed, Failed)
    assert read_body(encode(events, stream=False)) == [failed]
    if kind in (ErrorKind.OVERLOADED, ErrorKind.CONTEXT_LENGTH, ErrorKind.TIMEOUT):
        assert failed.kind is kind


def test_other_servers_streams_may_hold_more():
    data = (
        b'event: message_start\ndata: {"type":"message_start","message":{"type":"message","id":"m",'
        b'"role":"assistant","model":"x","content":[],"stop_reason":null,"stop_sequence":null,'
        b'"container":null,"usage":{"input_tokens":3,"cache_creation_input_tokens":0,'
        b'"cache_read_input_tokens":0,"output_tokens":1,"service_tier":"standard"}}}\n\n'
        b'event: ping\ndata: {"type":"ping"}\n\n: a comment\n\n'
        b'event: content_block_start\ndata: {"type":"content_block_start","index":0,'
        b'"content_block":{"type":"text","text":"","citations":null}}\n\n'
        b'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n'
        b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"refusal",'
        b'"stop_sequence":null},"usage":{"input_tokens":3,"cache_creation_input_tokens":0,'
        b'"cache_read_input_tokens":0,"output_tokens":1}}\n\n'
        b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
    )
    assert read_stream(data) == [
        Started(3),
        PartStart(0, "text"),
        PartEnd(0),
        Finished(0, "stop"),
        Usage(3, 1),
    ]


FULL = Call(
    "m",
    Dialogue(
        (
            Turn("system", (Text("a"), Text("b", {"note": 1}))),
            Turn("user", (Text("c"), Image(data=b"png", media_type="image/png"))),
            Turn(
                "assistant",
                (
                    Reasoning("t", signature="s"),
                    ToolCall("t1", "a", '{"x": 1.0}'),
                    ToolCall("t2", "a", "{}"),
                    ToolCall("t3", "b", "{}"),
                ),
            ),
            Turn(
                "tool",
                (
                    ToolResult("t1", (Text("r"),), is_error=True, name="a"),
                    ToolResult(
                        "t2", (Text("r"), Image(data=b"png"), Opaque("x", {"type": "x"})), name="a"
                    ),
                    ToolResult("t3", (), name="b"),
                ),
            ),
            Turn("user", (Document(text="d", title="T"), Document(data=b"%PDF")), extra={"id": 1}),
            Turn("system", (Text("in French"),)),
            Turn(
                "assistant", (Reasoning("", redacted="r"), Opaque("odd", {"type": "odd", "k": 1}))
            ),
            Turn("user", ()),
            Turn("assistant", (ToolCall("t4", "a", "oops"), Text("so"))),
        ),
        tools=(ToolSpec("a", "d", '{"type": "object"}', strict=True, extra={"x": 1}),),
        tool_choice=ToolChoice("named", ("a",), parallel=False),
        response_format=ResponseFormat("json_schema", text='{"type": "object"}'),
        reasoning=ReasoningSettings("on", effort="high", budget=1024),
        extra={"tools": [{"type": "web_search_20250305", "name": "w"}]},
    ),
    sampling=Sampling(temperature=0.5, top_p=1, top_k=3),
    stopping=Stopping(max_tokens=2048, strings=("x",)),
    output=Output(stream=True),
    identity=Identity(user="u"),
    hints=Hints(
        cache_markers=(
            CacheMarker(-1, 0, 3600),
            CacheMarker(0, 1),
            CacheMarker(1, 0, 300),
            CacheMarker(3, 2),
        )
    ),
    extra={
        "service_tier": "auto",
        "thinking": {"display": "summarized"},
        "metadata": {"team": "a"},
    },
)


def test_a_full_call_comes_back(codec):
    got = codec.decode(request(FULL))
    assert replace(plain(got), ignored=(), unknown=()) == FULL
    assert codec.decode(request(got)) == got


def test_counting_comes_back(codec):
    call = replace(FULL, stopping=Stopping(strings=("x",)))
    got = codec.decode(request(call, is_count=True)).call
    assert replace(plain(got), ignored=(), unknown=()) == call


@given(dialogues())
def test_any_dialogue_comes_back(codec, dialogue):
    call = Call("m", dialogue, stopping=Stopping(max_tokens=9))
    got = codec.decode(request(call))
    assert replace(got, ignored=(), unknown=()) == call


@pytest.mark.parametrize(
    "change",
    [
        {"tool_choice": ToolChoice("none", parallel=False)},
        {"tool_choice": ToolChoice("required")},
        {"tool_choice": ToolChoice(parallel=False)},
        {"reasoning": ReasoningSettings("off")},
        {"reasoning": ReasoningSettings("adaptive")},
        {"reasoning": ReasoningSettings(effort="low")},
        {"continue_final": True, "turns": (Turn("assistant", (Text("so"),)),)},
        {"turns": (Turn("system", ()), Turn("user", (Text("a"),)))},
    ],
)
def test_settings_come_back(codec, change):
    dialogue = replace(Dialogue((Turn("user", (Text("a"),)),), tools=FULL.dialogue.tools), **change)
    call = Call("m", dialogue, stopping=Stopping(max_tokens=9))
    assert replace(codec.decode(request(call)), ignored=(), unknown=()) == call


def test_audio_is_left_out():
    turns = (Turn("user", (Audio(data=b"wav"), Text("a"))), Turn("user", (Audio(data=b"wav"),)))
    body = msgspec.json.decode(request(Call("m", Dialogue(turns))).body)
    assert body["messages"] == [{"role": "user", "content": [{"type": "text", "text": "a"}]}]


def test_an_open_limit_is_given_a_number():
    call = Call("m", Dialogue((Turn("user", (Text("a"),)),)))
    assert msgspec.json.decode(request(call).body)["max_tokens"] == 4096
