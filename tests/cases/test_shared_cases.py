"""Published failures, each played through the flow in every cutting and mode.

The laws that hold for every case are the stage's; what each case expects is asserted by `EXPECT`.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases.expectations import EXPECT, Answered
from tests.cases.shared import FILE, asked, bodies, cases, paths
from tests.cases.stage import BROKEN, Played, Stage

OPEN = {
    "RS-03": "needs an engine with grammars: without one response_format is listed as ignored",
}
"""Cases that do not hold yet, and why."""
LONG = 100_000
"""Outputs of more tokens are played once, not in every cutting."""
KNOWN = "resp_1"
"""Of a case: a response that was made before."""
HALVES = ("LP-03",)
"""Cases in which texts of tokens are halves of a character, and show U+FFFD."""


def _play(stage: Stage, path: str, body: dict[str, Any], case: Any) -> Played:
    script = case.get("model_output")
    if body.get("previous_response_id") == KNOWN:
        # Why: a case can only name a response that is there by a name of its own.
        known = stage.play(path, {"model": body["model"], "input": "before"}).response.json()
        body = {**body, "previous_response_id": known["id"]}  # type: ignore[index,call-overload]
    if not script:
        return stage.play(path, {**body, "stream": False})
    if _length(script) > LONG:
        with Stage(context_length=1_000_000) as long:
            return long.play(path, body, script)
    if {"choices", "logprobs"} & set(script) or "variants" in case["input"]:
        return stage.play(path, body, script)
    if script["finish"] == "abort":
        return stage.play(path, body | {"stream": True}, script)
    hides = "" if case["id"] in HALVES else BROKEN
    return stage.play_all(path, body, script, hides=hides)


def _length(script: Any) -> int:
    return sum(p.get("times", 1) if isinstance(p, dict) else 1 for p in script.get("pieces", ()))


def _parameter(case: Any) -> Any:
    marks = []
    if case["id"] in OPEN:
        marks.append(pytest.mark.xfail(reason=OPEN[case["id"]], strict=True))
    if _length(case.get("model_output") or {}) > LONG:
        marks.append(pytest.mark.long)
    return pytest.param(case, id=case["id"], marks=marks)


CASES = [_parameter(case) for case in cases()]


@pytest.mark.skipif(not CASES, reason=f"there are no shared cases at {FILE}")
@pytest.mark.parametrize("case", CASES or [None])
def test_case(stage: Stage, case: Any) -> None:
    played: dict[str, list[Played]] = {}
    for path in paths(case):
        for body in bodies(case):
            given = asked(path, body, case)
            if given is not None:
                played.setdefault(path, []).append(_play(stage, path, given, case))
    for path, answers in played.items():
        for key, wanted in case["expect"].items():
            assert key in EXPECT, f"nothing checks {key!r}"
            EXPECT[key](Answered(stage, path, answers, case), wanted)
