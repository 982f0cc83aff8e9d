"""Vectors of the mock: of ids alone, of length 1, the same in every process."""

from __future__ import annotations

import asyncio
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokenwire.core.errors import ConfigError
from tokenwire.core.host import Host, lone_services
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import TokenJob
from tokenwire.plugins.engines.mock.embedding import vector

KNOWN = (-0.005413819819326235, -0.9999853451701)
IDS = st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=20)


@settings(derandomize=True, max_examples=60, deadline=None)
@given(IDS, st.integers(1, 20))
def test_a_vector_has_length_one_whatever_the_ids(ids, size):
    found = vector(TokenIds(ids), size)
    assert len(found) == size
    assert math.hypot(*found) == pytest.approx(1, abs=1e-9)
    assert found == pytest.approx(vector(TokenIds(reversed(ids)), size), abs=1e-9)


def test_it_is_the_same_everywhere():
    assert vector(TokenIds([1, 2, 3]), 2) == pytest.approx(KNOWN, abs=1e-12)


def built(**fields):
    return Host().engines.build("mock", fields, lone_services(), "engine")


def answer(engine, job):
    async def go():
        engine.submit([job])
        reader = engine.batches()
        batch = await anext(reader)
        await engine.drain(0)
        return batch

    return asyncio.run(go())


def test_jobs_of_both_tasks():
    engine = built(tasks=["generate", "embed"], embedding_size=3)
    card = engine.status().card
    assert (card.tasks, card.embedding_size) == (("generate", "embed"), 3)
    job = TokenJob("a", "m", TokenIds([1, 2]), attempt=1, n=2, task="embed")
    one, two = answer(engine, job)
    assert (one.choice, two.choice, one.attempt) == (0, 1, 1)
    assert one.vectors == two.vectors == (vector(job.prompt, 3),)
    assert one.counts is not None
    assert one.counts.prompt == one.counts.computed == 2
    assert one.finish is not None
    assert one.finish.kind.value == "stop"


def test_without_the_task_it_refuses_the_job():
    engine = built()
    assert engine.status().card.embedding_size is None
    (refused,) = answer(engine, TokenJob("a", "m", TokenIds([1]), task="embed"))
    assert refused.finish.cause.value == "refused"


def test_a_mock_that_does_nothing_is_none():
    with pytest.raises(ConfigError, match="tasks: wanted generate, embed or both"):
        built(tasks=[])
