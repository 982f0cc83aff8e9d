"""Leaving out the oldest turns: as few as will do, never the question, never a call's result."""

from __future__ import annotations

import asyncio

import pytest

from tokenwire.core.call import Call, Stopping
from tokenwire.core.dialogue import Dialogue, Text, Turn
from tokenwire.core.prompt import Prompt
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.truncation import fitted

ROLES = ("system", "user", "assistant", "tool", "assistant", "user", "assistant", "user")
"""Each turn is ten tokens."""


def prompt_of(call: Call) -> Prompt:
    return Prompt(TokenIds([1] * (10 * len(call.dialogue.turns))), "", "content", "f")


async def render(call: Call) -> Prompt:
    return prompt_of(call)


def fit(context: int, *, truncate: bool = True) -> tuple[list[str], tuple[str, ...]]:
    turns = tuple(Turn(role, (Text(role),)) for role in ROLES)  # type: ignore[arg-type]
    call = Call("m", Dialogue(turns), stopping=Stopping(max_tokens=5), truncate=truncate)
    fit, prompt = asyncio.run(fitted(call, prompt_of(call), context, render))
    assert len(prompt.ids) == 10 * len(fit.dialogue.turns)
    return [turn.role for turn in fit.dialogue.turns], fit.ignored


@pytest.mark.parametrize(
    ("context", "kept", "ignored"),
    [
        (100, list(ROLES), ()),
        (60, ["system", "user", "assistant", "user"], ("input[:4]",)),
        (30, ["system", "user"], ("input[:6]",)),
        (22, ["system", "user"], ("input[:6]",)),
        (15, list(ROLES), ()),
    ],
)
def test_as_few_as_will_do(context: int, kept: list[str], ignored: tuple[str, ...]) -> None:
    assert fit(context) == (kept, ignored)


def test_only_where_it_is_asked_for() -> None:
    assert fit(30, truncate=False) == (list(ROLES), ())
