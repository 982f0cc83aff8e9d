"""Choices that stop for want of credit and go on, while steps overlap: the same tokens."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from tests.plugins.engines.cuda.driving import engine, job, run
from tests.plugins.engines.cuda.faulty import settled
from tokenwire.core.ports.engine import Engine
from tokenwire.core.tokens import Credit, TokenJob

pytestmark = pytest.mark.torch

START = [5, 17, 99, 42, 42, 7, 11]


def jobs(credit: int | None) -> list[TokenJob]:
    prompts = [[START[k % 7], *START, k + 3] for k in range(10)]
    return [job(f"j{k}", prompt, max_tokens=24, credit=credit) for k, prompt in enumerate(prompts)]


async def trickled(made: Engine, seed: int) -> dict[str, list[int]]:
    """Each delta is answered by a little credit, so that choices park and come back all the time,
    also while a step of theirs is in flight, and others take the places that they leave."""
    random, found = Random(seed), {each.job: [] for each in jobs(1)}
    reader = made.batches()
    made.submit(jobs(1))
    left = len(found)
    while left:
        for delta in await anext(reader):
            found[delta.job].extend(delta.ids)
            left -= delta.finish is not None
            if delta.finish is None:
                made.control([Credit(delta.job, random.choice((1, 2, 3)))])

    async def rest() -> None:
        async for _ in reader:
            pass

    await asyncio.gather(made.drain(0), rest())
    return found


@pytest.mark.parametrize("overlap", [False, True])
def test_credit_in_trickles_changes_no_token(overlap: bool) -> None:
    expected = {name: list(answer.ids) for (name, _), answer in run(engine(), *jobs(None)).items()}
    for seed in range(4):
        made = engine(overlap=overlap, credit_cap=2, max_batch_size=4)
        assert asyncio.run(trickled(made, seed)) == expected
        settled(made)
