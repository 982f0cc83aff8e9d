"""Replies saved and restored at any event give the same bytes; a stream's state stays small."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenwire.core.call import Call, Output
from tokenwire.core.dialogue import Dialogue
from tokenwire.core.errors import ErrorKind
from tokenwire.core.events import (
    Failed,
    Finished,
    PartDelta,
    PartEnd,
    PartStart,
    Started,
    Usage,
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=90)


@st.composite
def answers(draw):
    events = [Started(draw(st.integers(0, 9)), 0, draw(st.sampled_from(["", "f" * 64])))]
    for kind in draw(st.lists(st.sampled_from(["text", "reasoning", "tool_call"]), max_size=4)):
        events.append(PartStart(0, kind, name="a" if kind == "tool_call" else ""))
        events += [PartDelta(0, text) for text in draw(st.lists(TEXTS, max_size=40))]
        events.append(PartEnd(0, complete=draw(st.booleans())))
    if draw(st.booleans()):
        return [*events, Failed(ErrorKind.OVERLOADED, "busy")]
    reason = draw(st.sampled_from(["stop", "length", "stop_sequence"]))
    end = Finished(0, reason, "###" if reason == "stop_sequence" else None)
    return [*events, end, Usage(9, draw(st.integers(0, 9)))]


@pytest.mark.parametrize("stream", [True, False])
@given(events=answers())
def test_restored_at_every_event(codec, stamp, stream, events):
    call = Call("m", Dialogue(()), output=Output(stream=stream))
    whole = codec.reply(call, stamp)
    expected = [whole.push(event) for event in events]
    reply, out = codec.reply(call, stamp), []
    for event in events:
        packed = msgspec.msgpack.encode(reply.save())
        assert not stream or len(packed) < 500
        reply = codec.reply(call, stamp)
        reply.restore(msgspec.msgpack.decode(packed))
        out.append(reply.push(event))
    assert out == expected


@pytest.mark.parametrize("kind", ["text", "reasoning", "tool_call"])
def test_a_streams_state_is_flat(codec, stamp, kind):
    reply = codec.reply(Call("m", Dialogue(()), output=Output(stream=True)), stamp)
    reply.push(Started(1, 0, "f" * 64))
    reply.push(PartStart(0, kind))
    for _ in range(5_000):
        reply.push(PartDelta(0, "some words of text "))
    assert len(msgspec.msgpack.encode(reply.save())) < 300


@pytest.mark.parametrize("state", [None, [], ["open"], {"a": 1}, "x"])
@pytest.mark.parametrize("stream", [True, False])
def test_what_is_no_state(codec, stamp, state, stream):
    reply = codec.reply(Call("m", Dialogue(()), output=Output(stream=stream)), stamp)
    if not stream and state == []:
        reply.restore(state)
        return
    with pytest.raises(msgspec.ValidationError):
        reply.restore(state)


@given(events=answers())
def test_interleaved_replies_share_nothing(codec, stamp, events):
    call = Call("m", Dialogue(()), output=Output(stream=True))
    alone = codec.reply(call, stamp)
    expected = [alone.push(event) for event in events]
    first, second = codec.reply(call, stamp), codec.reply(call, stamp)
    pairs = [(first.push(event), second.push(event)) for event in events]
    assert pairs == [(data, data) for data in expected]
