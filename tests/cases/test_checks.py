"""Each check passes what is right, and catches an answer that is wrong in just its way."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from tests.cases import checks
from tests.cases.message import Call, Message
from tests.cases.played import CHAT, MESSAGES, RESPONSES
from tests.cases.stage import Played, Stage
from tokenwire.core.testing.client import Response
from tokenwire.core.tokens import EngineCard, EngineStatus

ASKED: dict[str, Any] = {"model": "plain", "messages": [{"role": "user", "content": "hi"}]}
SCRIPT = {"pieces": ["one ", "two ", "three"], "finish": "eos"}
LONG = "x" * 1000
FAILED = (
    b'event: error\ndata: {"type": "error", "error": {"type": "api_error", "message": "m"}}\n\n'
)


@pytest.fixture(scope="module")
def unary(stage: Stage) -> Played:
    return stage.play(CHAT, ASKED, SCRIPT)


@pytest.fixture(scope="module")
def streamed(stage: Stage) -> Played:
    options = {"stream": True, "stream_options": {"include_usage": True}}
    return stage.play(CHAT, {**ASKED, **options}, SCRIPT)


def _changed(played: Played, old: bytes, new: bytes) -> Response:
    """The same response with other bytes."""
    body = played.response.body
    assert old in body
    return replace(played.response, chunks=(body.replace(old, new, 1),))


def test_1_cut_invariance_catches_a_lost_word(unary: Played, streamed: Played) -> None:
    checks.cut_invariance(unary, streamed)
    lost = Played(CHAT, _changed(streamed, b'"two "', b'"tw"'))
    with pytest.raises(AssertionError):
        checks.cut_invariance(unary, lost)


def test_2_mode_equality_catches_another_count_of_tokens(unary: Played, streamed: Played) -> None:
    checks.mode_equality(unary, streamed)
    miscounted = Played(
        CHAT, _changed(streamed, b'"completion_tokens":3', b'"completion_tokens":9')
    )
    checks.cut_invariance(unary, miscounted)
    with pytest.raises(AssertionError):
        checks.mode_equality(unary, miscounted)


WHOLE = Message(content=LONG, calls=(Call("f", '{"a": 1}'),))


@pytest.mark.parametrize(
    "moments",
    [
        [Message(content=LONG + "taken back"), WHOLE],
        [Message(content=LONG, calls=(Call("g", ""),)), WHOLE],
        [Message(content=LONG, calls=(Call("f", '{"b'),)), WHOLE],
        [Message(content=LONG, calls=(Call("f", ""), Call("f", ""))), WHOLE],
        [Message(reasoning="hm", content=LONG), WHOLE],
        [Message(content=""), WHOLE],
    ],
    ids=["retracted", "renamed", "rewritten", "a call lost", "reasoning lost", "held back"],
)
def test_3_append_only_catches(moments: list[Message]) -> None:
    half = replace(WHOLE, content=LONG[:500], calls=())
    checks.append_only([half, WHOLE], [500, 0])
    with pytest.raises(AssertionError):
        checks.append_only(moments, [10, 0])


@pytest.mark.parametrize("leak", ["Traceback", "/site-packages/x", "a.py", "\ufffd", "<|im_end|>"])
def test_4_no_leak_catches(streamed: Played, leak: str) -> None:
    hidden = (checks.BROKEN, "<|im_end|>")
    checks.no_leak(streamed.response, *hidden)
    leaking = _changed(streamed, b"two ", leak.encode())
    with pytest.raises(AssertionError):
        checks.no_leak(leaking, *hidden)
    told = replace(streamed.response, headers={**streamed.response.headers, "x-said": leak})
    with pytest.raises(AssertionError):
        checks.no_leak(told, *hidden)


def test_5_one_ending_catches_two_none_and_a_fake_one(stage: Stage, streamed: Played) -> None:
    checks.one_ending(CHAT, streamed.response)
    done = b"data: [DONE]\n\n"
    events = [event for event in streamed.response.body.split(b"\n\n") if event]
    (finish,) = [event for event in events if b'"finish_reason":"stop"' in event]
    failure = b'data: {"error": {"message": "m"}}\n\n'
    for old, new in (
        (done, b""),
        (done, done + done),
        (done, done + events[0] + b"\n\n"),
        (finish, finish + b"\n\n" + finish),
        (finish + b"\n\n", b""),
        (done, failure),
    ):
        with pytest.raises((AssertionError, IndexError)):
            checks.one_ending(CHAT, _changed(streamed, old, new))


@pytest.mark.parametrize("path", [MESSAGES, RESPONSES])
def test_5_one_ending_catches_them_on_the_other_protocols(stage: Stage, path: str) -> None:
    body = {"model": "plain", "input": "hi"} if path == RESPONSES else {**ASKED, "max_tokens": 99}
    streamed = stage.play(path, {**body, "stream": True}, SCRIPT)
    events = [event + b"\n\n" for event in streamed.response.body.split(b"\n\n") if event]
    last = events[-1]
    for new in (b"", last + last, last + events[2], FAILED if path == MESSAGES else b""):
        with pytest.raises((AssertionError, KeyError)):
            checks.one_ending(path, _changed(streamed, last, new))


def test_6_official_clients_catch_another_message(unary: Played, streamed: Played) -> None:
    checks.official_clients(ASKED, unary.response, streamed.response, unary)
    other = _changed(streamed, b'"two "', b'"tw"')
    with pytest.raises(AssertionError):
        checks.official_clients(ASKED, unary.response, other, unary)
    unread = _changed(streamed, b'"choices":[', b'"choices":[7,')
    with pytest.raises(Exception, match=r".*"):
        checks.official_clients(ASKED, unary.response, unread, unary)


def test_7_round_trip_catches_a_refusal_and_another_beginning(stage: Stage, unary: Played) -> None:
    ids = stage.prompt(unary.response).ids
    checks.round_trip(ids, unary, (*ids, 1, 2))
    checks.round_trip(ids, unary, (1, 2), "diverged; token=0; cause=c; where=chat_template; lost=9")
    refused = stage.play(CHAT, {**ASKED, "messages": 5})
    for answer, second, note in (
        (refused, None, ""),
        (unary, ids[:-1], ""),
        (unary, (1, *ids), "spliced; tokens=9"),
        (unary, (1, *ids), "diverged; token=0; cause=; where=; lost=9"),
    ):
        with pytest.raises(AssertionError):
            checks.round_trip(ids, answer, second, note)


def test_8_isolation_catches_a_crossed_word_and_what_is_left(
    unary: Played, streamed: Played
) -> None:
    checks.isolation([unary, unary], [streamed, unary])
    crossed = Played(CHAT, _changed(streamed, b'"two "', b'"five "'))
    with pytest.raises(AssertionError):
        checks.isolation([unary, unary], [streamed, crossed])
    with pytest.raises(ValueError, match="zip"):
        checks.isolation([unary, unary], [streamed])
    idle = EngineStatus(EngineCard("e", 10, 10), kv_blocks_total=8, kv_blocks_free=8)
    checks.nothing_held({"m": idle})
    for left in ({"running": 1}, {"waiting": 1}, {"kv_blocks_free": 7}):
        with pytest.raises(AssertionError):
            checks.nothing_held({"m": replace(idle, **left)})


WRONG: list[Callable[[dict[str, Any]], object]] = [
    lambda body: body.update(error={"type": "x", "message": "m"}),
    lambda body: body["error"].update(message=""),
    lambda body: body.pop("error"),
]


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
def test_9_client_fault_catches_a_fault_of_ours_and_another_shape(stage: Stage, path: str) -> None:
    refused = stage.client.post(path, {"model": "plain", "messages": 5})
    checks.client_fault(path, refused)
    with pytest.raises(AssertionError):
        checks.client_fault(path, replace(refused, status=500))
    with pytest.raises(AssertionError):
        checks.client_fault(path, replace(refused, headers={"content-type": "text/html"}))
    for change in WRONG[1:] if path == MESSAGES else WRONG:
        body: Any = refused.json()
        change(body)
        with pytest.raises((AssertionError, KeyError)):
            checks.client_fault(path, replace(refused, chunks=(json.dumps(body).encode(),)))
    if path == MESSAGES:
        body = refused.json()
        del body["type"]
        with pytest.raises((AssertionError, KeyError)):
            checks.client_fault(path, replace(refused, chunks=(json.dumps(body).encode(),)))
