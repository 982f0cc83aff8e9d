"""Events to bytes: order, ids, stop reasons, usage, failures; streams and unary bodies alike."""

from __future__ import annotations

import re

import msgspec
import pytest
from jiter import from_json

from tokenwire.core.call import Call, Output
from tokenwire.core.dialogue import Dialogue
from tokenwire.core.errors import CodecStateError, ErrorKind
from tokenwire.core.events import (
    Failed,
    Finished,
    Logprobs,
    PartDelta,
    PartEnd,
    PartStart,
    Started,
    Usage,
)
from tokenwire.core.wire import SseReader, Stamp
from tokenwire.plugins.protocols._shared.error_types import TYPES

STARTED = Started(12, 5, "fingerprint")
USAGE = Usage(12, 9, cached_tokens=5, cache_creation_tokens=3, reasoning_tokens=2)


def part(kind, *texts, name="", call_id=None, complete=True):
    return [
        PartStart(0, kind, name=name, call_id=call_id),
        *(PartDelta(0, text) for text in texts),
        PartEnd(0, complete=complete),
    ]


def answer(*parts, reason="stop", matched=None):
    flat = [event for events in parts for event in events]
    return [STARTED, *flat, Finished(0, reason, matched), USAGE]


def values(data):
    return [msgspec.json.decode(message.data) for message in SseReader().push(data)]


def body(data):
    return msgspec.json.decode(data)


def test_text(encode, shape):
    assert shape(encode(answer(part("text", "he", "llo")))) == [
        "message_start",
        "content_block_start:text:0",
        "content_block_delta:text_delta:0",
        "content_block_stop:0",
        "message_delta:end_turn",
        "message_stop",
    ]


def test_text_then_tool(encode, shape):
    events = answer(
        part("text", "I will look. "),
        part("tool_call", '{"port": ', '"Faro"}', name="get_tide"),
        reason="tool_calls",
    )
    assert shape(encode(events)) == [
        "message_start",
        "content_block_start:text:0",
        "content_block_delta:text_delta:0",
        "content_block_stop:0",
        "content_block_start:tool_use:1",
        "content_block_delta:input_json_delta:1",
        "content_block_stop:1",
        "message_delta:tool_use",
        "message_stop",
    ]


def test_thinking_then_text(encode, shape):
    data = encode(answer(part("reasoning", "two ", "and two"), part("text", "4")))
    assert shape(data) == [
        "message_start",
        "content_block_start:thinking:0",
        "content_block_delta:thinking_delta:0",
        "content_block_delta:signature_delta:0",
        "content_block_stop:0",
        "content_block_start:text:1",
        "content_block_delta:text_delta:1",
        "content_block_stop:1",
        "message_delta:end_turn",
        "message_stop",
    ]
    start = values(data)[1]["content_block"]
    assert start == {"type": "thinking", "thinking": "", "signature": ""}
    deltas = [value["delta"] for value in values(data) if "delta" in value]
    assert re.fullmatch(r"[A-Za-z0-9_=-]{60,}", deltas[2]["signature"])


def test_an_empty_answer(encode, shape):
    events = [STARTED, Finished(0, "stop"), USAGE]
    assert shape(encode(events)) == ["message_start", "message_delta:end_turn", "message_stop"]
    assert body(encode(events, stream=False))["content"] == []


def test_a_tool_block_starts_empty_and_its_pieces_add_up(encode):
    data = encode(answer(part("tool_call", '{"room": "att', 'ic", "level": 3}', name="set_lamp")))
    start, *rest = values(data)[1:]
    assert start["content_block"]["input"] == {}
    assert start["content_block"]["name"] == "set_lamp"
    pieces = "".join(v["delta"]["partial_json"] for v in rest if "partial_json" in str(v))
    assert msgspec.json.decode(pieces) == {"room": "attic", "level": 3}


def test_a_call_without_arguments_has_one_empty_piece(encode):
    events = answer(part("tool_call", name="now"), reason="tool_calls")
    pieces = [v["delta"]["partial_json"] for v in values(encode(events)) if "partial" in str(v)]
    assert pieces == [""]
    assert body(encode(events, stream=False))["content"][0]["input"] == {}


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ('{"x": [1, {"y": "abc', {"x": [1, {}]}),
        ('{"x": 1, "y', {"x": 1}),
        ("{", {}),
    ],
)
def test_a_call_that_was_cut_off_is_not_completed(encode, text, given):
    events = answer(part("tool_call", text, name="a", complete=False), reason="length")
    data = encode(events)
    assert pieces_of(data) == text
    whole = body(encode(events, stream=False))
    assert whole["content"][0]["input"] == given
    assert whole["stop_reason"] == values(data)[-2]["delta"]["stop_reason"] == "max_tokens"


def pieces_of(data):
    deltas = [value["delta"] for value in values(data) if value["type"] == "content_block_delta"]
    return "".join(delta["partial_json"] for delta in deltas)


DEEP = '{"a":' * 123 + "1" + "}" * 123
RAW = [
    "nonsense",
    "{a: 1}",
    '{"a": 1e999}',
    '{"a": NaN}',
    "[1, 2]",
    "3",
    "null",
    '"text"',
    '"{\\"a\\": 1}"',
    "[" * 5000,
    '"' + "[" * 200 + '"',
]
BROKEN = [
    '{"a": 1,}',
    '{"a": "cut',
    '{"a": 1}, "b": 2',
    '{"a": 1}]}]}, {"b": [{"c": [{"d": 2}',
    '{"a": "\\ud800"}',
    f'{{"a":{DEEP}}}',
]
VALUES = ['{"a": 1}', DEEP, '{"a": "\\ud83d\\ude00"}']


def unary_input(encode, text, **fields):
    data = encode(answer(part("tool_call", text, name="a", **fields)), stream=False)
    return body(data)["content"][0]["input"]


@pytest.mark.parametrize("text", RAW)
def test_arguments_that_no_request_could_hold_are_raw_text(encode, decode, text):
    assert unary_input(encode, text) == {"raw": text}
    assert sent_back(decode, unary_input(encode, text)).ignored == ()


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize("text", [*RAW, *BROKEN, *VALUES])
def test_a_stream_adds_up_to_the_unary_input(encode, decode, text, complete):
    given = unary_input(encode, text, complete=complete)
    data = encode(answer(part("tool_call", *text[:400], text[400:], name="a", complete=complete)))
    assert given == from_json(pieces_of(data).encode(), partial_mode=True)
    assert isinstance(given, dict)
    sent_back(decode, given)


@pytest.mark.parametrize("text", VALUES)
def test_other_json_is_the_value_that_the_stream_adds_up_to(encode, decode, text):
    given = unary_input(encode, text)
    assert given == from_json(text.encode(), partial_mode=True)
    sent_back(decode, given)


def test_of_a_key_written_twice_the_last_one_is_sent(encode, decode):
    text = '{"a": 1, "b": {"c": 1, "c": "é"}, "a": 12345678901234567890123}'
    data = encode(answer(part("tool_call", text, name="a")), stream=False)
    assert data.count(b'"c"') == 1
    assert unary_input(encode, text) == from_json(text.encode(), partial_mode=True)
    sent_back(decode, unary_input(encode, text))
    digits = f'{{"a": 1, "a": 1, "b": [{"9" * 300}]}}'
    assert unary_input(encode, digits) in ({"raw": digits}, {"a": 1, "b": [int("9" * 300)]})


def sent_back(decode, given):
    use = {"type": "tool_use", "id": "toolu_1", "name": "a", "input": given}
    turns = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": [use]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "r"}],
        },
    ]
    return decode(messages=turns)


def test_arguments_stand_in_the_unary_body_as_they_were_written(encode):
    text = '{"n": 1.50, "big": 123456789012345678901234567890, "e": "\\u00e9"}'
    data = encode(answer(part("tool_call", text, name="a")), stream=False)
    assert text.encode() in data


@pytest.mark.parametrize("given", [None, "functions.get_tide:0", "call_1", "toolu_"])
def test_ids_have_this_wires_shape(encode, given):
    events = answer(
        part("tool_call", "{}", name="a", call_id=given),
        part("tool_call", "{}", name="a", call_id=given),
        reason="tool_calls",
    )
    blocks = [v["content_block"] for v in values(encode(events)) if "content_block" in v]
    ids = [block["id"] for block in blocks]
    assert all(re.fullmatch(r"toolu_[A-Za-z0-9]{24}", id_) for id_ in ids)
    assert len(set(ids)) == 2
    assert re.fullmatch(r"msg_[A-Za-z0-9]{24}", values(encode(events))[0]["message"]["id"])


def test_an_id_of_this_wires_shape_is_kept(encode):
    data = encode(answer(part("tool_call", "{}", name="a", call_id="toolu_9")), stream=False)
    assert body(data)["content"][0]["id"] == "toolu_9"


@pytest.mark.parametrize(
    ("reason", "matched", "word", "sequence"),
    [
        ("stop", None, "end_turn", None),
        ("stop_sequence", "@@", "stop_sequence", "@@"),
        ("length", None, "max_tokens", None),
        ("context_length", None, "model_context_window_exceeded", None),
        ("tool_calls", None, "tool_use", None),
        ("cancelled", None, "pause_turn", None),
        ("stop", "@@", "end_turn", None),
    ],
)
def test_stop_reasons(encode, reason, matched, word, sequence):
    events = answer(part("text", "one "), reason=reason, matched=matched)
    data = values(encode(events))
    assert data[0]["message"]["stop_reason"] is None
    assert data[0]["message"]["stop_sequence"] is None
    assert data[-2]["delta"] == {"stop_reason": word, "stop_sequence": sequence}
    whole = body(encode(events, stream=False))
    assert (whole["stop_reason"], whole["stop_sequence"]) == (word, sequence)


def test_usage(encode):
    data = values(encode(answer(part("text", "a"))))
    assert data[0]["message"]["usage"] == {
        "input_tokens": 7,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 5,
        "output_tokens": 0,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
    }
    total = {
        "input_tokens": 4,
        "cache_creation_input_tokens": 3,
        "cache_read_input_tokens": 5,
        "output_tokens": 9,
        "cache_creation": {"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 0},
        "output_tokens_details": {"thinking_tokens": 2},
    }
    assert data[-2]["usage"] == total
    assert body(encode(answer(part("text", "a")), stream=False))["usage"] == total


@pytest.mark.parametrize("kind", ["text", "reasoning", "tool_call"])
def test_no_line_of_a_stream_breaks_in_text(encode, kind):
    text = "a\u2028b\u2029c\u0085d\x0be\r\nf"
    data = encode([*answer(part(kind, text, name=text))[:-2], Failed(ErrorKind.INTERNAL, text)])
    assert data.decode().splitlines() == data.decode().split("\n")[:-1]
    assert text in msgspec.json.decode(SseReader().push(data)[-1].data)["error"]["message"]


def test_logprobs_are_left_out(encode):
    events = answer(part("text", "a"))
    assert encode([*events[:1], Logprobs(0, ()), *events[1:]]) == encode(events)


@pytest.mark.parametrize("kind", ErrorKind)
def test_a_failure_ends_the_stream_with_an_error_event(encode, shape, kind):
    data = encode([STARTED, PartStart(0, "text"), PartDelta(0, "a"), Failed(kind, "no luck")])
    assert shape(data)[-1] == "error"
    error = values(data)[-1]
    assert error["type"] == "error"
    assert error["error"]["type"] == TYPES[kind]
    assert "no luck" in error["error"]["message"]
    assert error["request_id"] == "req_1"


def test_nothing_after_the_end(codec, stamp):
    for last in (USAGE, Failed(ErrorKind.INTERNAL, "x")):
        for stream in (True, False):
            reply = codec.reply(Call("m", Dialogue(()), output=Output(stream=stream)), stamp)
            for event in answer(part("text", "a"))[:-1]:
                reply.push(event)
            reply.push(last)
            assert reply.keepalive() == b""
            for late in (PartDelta(0, "b"), USAGE, STARTED, PartStart(0, "text")):
                with pytest.raises(CodecStateError):
                    reply.push(late)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    "events",
    [
        [PartStart(0, "text")],
        [STARTED, STARTED],
        [STARTED, PartDelta(0, "a")],
        [STARTED, PartStart(0, "text"), PartDelta(1, "a")],
        [STARTED, PartStart(0, "text"), PartDelta(-1, "a")],
        [STARTED, PartStart(1, "text")],
        [STARTED, PartStart(0, "text"), PartStart(0, "text")],
        [STARTED, PartStart(0, "text"), Finished(0, "stop")],
        [STARTED, USAGE],
    ],
)
def test_events_out_of_order(encode, events, stream):
    with pytest.raises(CodecStateError):
        encode(events, stream=stream)


def test_keepalive(codec, stamp):
    reply = codec.reply(Call("m", Dialogue(()), output=Output(stream=True)), stamp)
    assert reply.keepalive() == b": keep-alive\n\n"
    reply.push(STARTED)
    assert reply.keepalive() == b'event: ping\ndata: {"type":"ping"}\n\n'
    unary = codec.reply(Call("m", Dialogue(())), stamp)
    assert unary.keepalive() == b""


def test_content_types(codec, stamp):
    stream = codec.reply(Call("m", Dialogue(()), output=Output(stream=True)), stamp)
    assert stream.content_type == "text/event-stream"
    assert codec.reply(Call("m", Dialogue(())), stamp).content_type == "application/json"


def test_ids_follow_from_the_stamp_alone(codec):
    def run(entropy):
        stamp = Stamp("req_1", 1.0, entropy)
        reply = codec.reply(Call("m", Dialogue(()), output=Output(stream=True)), stamp)
        return b"".join(reply.push(e) for e in answer(part("tool_call", "{}", name="a")))

    assert run(b"a" * 16) == run(b"a" * 16) != run(b"b" * 16)
