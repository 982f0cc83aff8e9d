"""Published failures, each played through the flow in every cutting and mode.

The checks that hold for every case are the stage's; what each case expects is asserted by `EXPECT`,
or, where a case says it in words alone, by `SAID`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.cases import checks
from tests.cases.cutting import ALL_SEEDS, length_of
from tests.cases.expectations import EXPECT, Answered
from tests.cases.shared import FILE, asked, bodies, every, is_played, paths
from tests.cases.stage import BROKEN, CHAT, COMPLETIONS, MESSAGES, RESPONSES, Played, Stage

HUGE = 100_000
"""Bytes: longer outputs are played once a mode, not in every cutting, and among the long tests."""
KNOWN = "resp_1"
"""Of a case: a response that was made before."""
HALVES = ("LP-03",)
"""Cases in which texts of tokens are halves of a character, and show U+FFFD."""


def _play(stage: Stage, path: str, body: dict[str, Any], case: Any) -> Played:
    script = case.get("model_output")
    if body.get("previous_response_id") == KNOWN:
        # Why: a case can only name a response that is there by a name of its own.
        known: Any = stage.play(path, {"model": body["model"], "input": "before"}).response.json()
        body = {**body, "previous_response_id": known["id"]}
    if script and script.get("grammar"):
        # Why: what may be written before a grammar begins is the end of the thinking.
        script = {**script, "pieces": ["</think>", *script["pieces"]]}
    if not script:
        return stage.play(path, {**body, "stream": False})
    if length_of(script) > HUGE:
        with Stage(context_length=1_000_000) as long:
            unary = long.play(path, {**body, "stream": False}, script)
            usage = {"stream_options": {"include_usage": True}}
            streamed = long.play(path, {**body, "stream": True, **usage}, script)
            checks.mode_equality(unary, streamed)
            return unary
    if {"choices", "logprobs"} & set(script) or "variants" in case["input"]:
        return stage.play(path, body, script)
    if script["finish"] == "abort":
        return stage.play(path, body | {"stream": True}, script)
    hides = "" if case["id"] in HALVES else BROKEN
    return stage.play_all(path, body, script, hides=hides, seeds=ALL_SEEDS)


# --- what is said in words ---------------------------------------------------------------------


def _stops(at: Answered) -> None:
    """None and an empty list are no stop strings; an empty text is refused."""
    for body, answer in zip(at.bodies, at.answers, strict=True):
        stops = body.get("stop", body.get("stop_sequences"))
        assert answer.status == (400 if stops in ("", [""]) else 200)
        assert answer.status == 400 or answer.message.content == "hello"


def _empty_value(at: Answered) -> None:
    (call,) = at.message.calls
    arguments = json.loads(call.arguments)
    assert arguments["room"] == "hall"
    assert arguments.get("level", "") == ""


def _seeded(at: Answered) -> None:
    assert at.answers[0].status == 200
    again = at.play(at.bodies[0])
    assert [choice.content for choice in again.choices] == [
        choice.content for choice in at.answers[0].choices
    ]
    assert at.play({**at.bodies[0], "seed": 2**64}).status == 400


def _shaped(at: Answered) -> None:
    """By an engine that keeps to the grammar, and says what it likes where that allows it."""
    answer = at.play(at.bodies[0]).message
    assert isinstance(json.loads(answer.content or ""), dict)
    assert not (answer.reasoning or "").startswith("{")


SAID: Mapping[str, Callable[[Answered], None]] = {
    "LP-12": _seeded,
    "RS-03": _shaped,
    "ST-07": _stops,
    "TP-16": _empty_value,
    "TS-19": lambda at: _served(at),
}


def _served(at: Answered) -> None:
    assert [answer.status for answer in at.answers] == [200] * len(at.answers)


# --- the cases ---------------------------------------------------------------------------------


def _parameter(case: Any) -> Any:
    is_huge = length_of(case.get("model_output") or {}) > HUGE
    return pytest.param(case, id=case["id"], marks=[pytest.mark.long] if is_huge else [])


CASES = [_parameter(case) for case in every() if is_played(case)]
IS_THERE = pytest.mark.skipif(not CASES, reason=f"there are no shared cases at {FILE}")


@IS_THERE
@pytest.mark.parametrize("case", CASES or [None])
def test_case(stage: Stage, case: Any) -> None:
    assert case.get("expect") or case["id"] in SAID, "nothing says what is right"
    played = set()
    for path in paths(case):
        given = [body for body in (asked(path, b, case) for b in bodies(case)) if body is not None]
        if not given:
            continue
        played.add(path)
        answers = [_play(stage, path, body, case) for body in given]
        at = Answered(stage, path, answers, case, given)
        for key, wanted in (case.get("expect") or {}).items():
            assert key in EXPECT, f"nothing checks {key!r}"
            EXPECT[key](at, wanted)
        if case["id"] in SAID:
            SAID[case["id"]](at)
    own = set(paths(case)) - {MESSAGES, COMPLETIONS, RESPONSES} or set(paths(case))
    assert played >= own, "each case is played on the protocol that it is of"
    if case["protocol"] == "all" and "n" not in case["input"]:
        assert played >= {CHAT, MESSAGES}
