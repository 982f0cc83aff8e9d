"""The embedding engine's loop on a network of no weights: ends of every kind, and who is spared."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from tokenwire.core.threaded_engine import ThreadedEngine
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import (
    Abort,
    AbortReason,
    Adapter,
    Credit,
    EngineCard,
    JobSampling,
    LogprobSettings,
    TokenDelta,
    TokenJob,
)
from tokenwire.plugins.engines.cuda.embedding_queue import EmbeddingQueue
from tokenwire.plugins.engines.cuda.embedding_worker import EmbeddingWorker

CARD = EngineCard(
    "m",
    100,
    8,
    tasks=("embed",),
    embedding_size=2,
    adapters=(Adapter("a"),),
    capabilities=("priority", "deadline", "adapter"),
)
BROKEN, POISON = 66, 77
"""Ids whose texts fail, or give NaN."""


class Network:
    """The vector of a text is its length and its adapter's slot. It waits for `gate`."""

    def __init__(self) -> None:
        self.passes: list[list[tuple[int, ...]]] = []
        self.gate = threading.Event()
        self.gate.set()
        self.begun = threading.Event()
        self.is_alive = True

    def __call__(self, batch: Sequence[tuple[Sequence[int], int]]) -> list[tuple[float, ...]]:
        self.passes.append([tuple(ids) for ids, _ in batch])
        self.begun.set()
        assert self.gate.wait(20)
        if any(BROKEN in ids for ids, _ in batch):
            raise RuntimeError("an illegal memory access")
        return [(math.nan if POISON in ids else len(ids), slot) for ids, slot in batch]


def engine(network: Network, *, max_open: int = 50) -> ThreadedEngine:
    worker = EmbeddingWorker(
        CARD, EmbeddingQueue(4, 12), network, is_alive=lambda: network.is_alive, adapters=("a",)
    )
    return ThreadedEngine(worker, CARD, max_open, "cuda")


def job(name: str, ids: Sequence[int] = (1, 2), **fields) -> TokenJob:
    return replace(TokenJob(name, "m", TokenIds(ids), task="embed"), **fields)


async def read(made: ThreadedEngine, found: dict[str, TokenDelta]) -> None:
    async for batch in made.batches():
        for delta in batch:
            assert delta.job not in found, "one delta a job"
            assert delta.finish is not None
            assert delta.counts is not None or delta.finish.replay_safe
            found[delta.job] = delta


async def until(done) -> None:
    for _ in range(20_000):
        if done():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it did not come to that")


def run(network: Network, *jobs: TokenJob, more=None, max_open: int = 50) -> dict[str, TokenDelta]:
    """Submits them together; `more(engine, found)` does what else there is to do."""

    async def go() -> dict[str, TokenDelta]:
        found: dict[str, TokenDelta] = {}
        made = engine(network, max_open=max_open)
        reading = asyncio.ensure_future(read(made, found))
        await asyncio.sleep(0)
        made.submit(jobs)
        if more is not None:
            await more(made, found)
        await until(lambda: len(found) >= len(jobs))
        await made.drain(1)
        await reading
        return found

    return asyncio.run(go())


def ends(found: dict[str, TokenDelta]) -> dict[str, str]:
    return {name: delta.finish.cause.value for name, delta in sorted(found.items())}


def test_vectors_with_their_counts_in_few_passes():
    network = Network()
    jobs = [job(f"j{k}", [1] * (k % 5 + 1)) for k in range(20)]
    found = run(network, *jobs)
    assert [found[each.job].vectors for each in jobs] == [
        ((float(len(each.prompt)), 0),) for each in jobs
    ]
    assert {delta.finish.kind.value for delta in found.values()} == {"stop"}
    assert found["j3"].counts.prompt == found["j3"].counts.computed == 4
    assert sum(map(len, network.passes)) == 20
    assert len(network.passes) < 20
    assert all(sum(map(len, each)) <= 12 and len(each) <= 4 for each in network.passes)


def test_a_job_may_name_its_adapter():
    found = run(Network(), job("a", adapter=Adapter("a")), job("b"))
    assert (found["a"].vectors, found["b"].vectors) == (((2, 1),), ((2, 0),))


@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        ({"task": "generate"}, "refused"),
        ({"prompt": TokenIds()}, "refused"),
        ({"prompt": TokenIds([100])}, "refused"),
        ({"prompt": TokenIds([1] * 9)}, "context_length"),
        ({"prompt": TokenIds([1] * 8)}, "eos"),
        ({"adapter": Adapter("b")}, "refused"),
        ({"logprobs": LogprobSettings()}, "refused"),
        ({"sampling": JobSampling(seed=3, temperature=0.5), "credit": 0}, "eos"),
    ],
)
def test_what_the_card_does_not_allow_is_refused(fields, cause):
    async def credit(made, found):
        made.control([Credit("a", 5)])
        await until(lambda: found)

    network = Network()
    found = run(network, job("a", **fields), more=credit)
    assert ends(found)["a"] == cause


def test_aborts_reach_jobs_that_wait_and_jobs_that_run():
    network = Network()
    network.gate.clear()

    async def more(made, found):
        await until(network.begun.is_set)
        status = made.status()
        assert (status.running, status.waiting) == (4, 2)
        made.control(
            [Abort("j0"), Abort("j5", 0, AbortReason.DEADLINE), Abort("none"), Abort("j1", 3)]
        )
        network.gate.set()

    found = run(network, *(job(f"j{k}") for k in range(6)), more=more)
    assert ends(found) == {
        "j0": "client",
        "j1": "eos",
        "j2": "eos",
        "j3": "eos",
        "j4": "eos",
        "j5": "deadline",
    }
    assert len(network.passes) == 2
    assert len(network.passes[1]) == 1


def test_a_deadline_ends_a_job_that_waits():
    network = Network()
    network.gate.clear()

    async def more(made, found):
        await until(network.begun.is_set)
        await asyncio.sleep(0.01)
        network.gate.set()

    full = [job(f"j{k}") for k in range(4)]
    found = run(network, *full, job("late", deadline_ms=5), job("rest"), more=more)
    assert ends(found) == {f"j{k}": "eos" for k in range(4)} | {"late": "deadline", "rest": "eos"}


def test_nan_and_errors_end_those_alone_that_have_them():
    network, seen = Network(), []

    async def more(made, found):
        await until(lambda: len(found) == 4)
        seen.extend(made.status().figures)

    found = run(network, job("a"), job("b", [POISON]), job("c", [BROKEN]), job("d"), more=more)
    errors = {each.label: each.values for each in seen if each.name == "op_errors"}
    assert errors.keys() == {"other", "network"}
    assert errors["network"] == (1.0,)
    assert errors["other"][0] in (1.0, 2.0), "the pass, and the text alone where others shared it"
    assert ends(found) == {"a": "eos", "b": "internal", "c": "internal", "d": "eos"}
    assert found["b"].finish.message == "the network gave NaN or infinity"
    assert found["c"].finish.message == "RuntimeError in a pass"
    assert not found["b"].vectors
    assert found["a"].vectors == ((2, 0),)


def test_a_lost_device_is_told_and_takes_no_more():
    network = Network()
    network.is_alive = False

    async def more(made, found):
        await until(lambda: len(found) == 2)
        assert not made.status().ready
        assert made.status().reason == "the device is lost"
        made.submit([job("next")])
        await until(lambda: "next" in found)

    found = run(network, job("a", [BROKEN]), job("b"), more=more)
    assert ends(found) == {"a": "lost", "b": "lost", "next": "lost"}


def test_too_many_are_told_so():
    network = Network()
    network.gate.clear()

    async def more(made, found):
        await until(lambda: len(found) == 2)
        network.gate.set()

    found = run(network, *(job(f"j{k}") for k in range(7)), more=more, max_open=5)
    assert list(ends(found).values()) == [*["eos"] * 5, *["overloaded"] * 2]
    assert found["j6"].finish.retryable


def test_what_is_left_when_it_is_drained_ends_so():
    network = Network()
    network.gate.clear()

    async def more(made, found):
        await until(network.begun.is_set)
        draining = asyncio.ensure_future(made.drain(0))
        await until(lambda: made._worker._inbox.is_stopping)
        network.gate.set()
        await draining
        made.submit([job("next")])

    found = run(network, *(job(f"j{k}") for k in range(6)), more=more)
    assert list(ends(found).values())[-2:] == ["drain", "drain"]
    assert {delta.finish.kind.value for delta in found.values()} <= {"stop", "abort"}


def test_its_figures():
    network = Network()
    seen = []

    async def more(made, found):
        await until(lambda: len(found) == 3)
        seen.extend(made.status().figures)

    run(network, *(job(f"j{k}") for k in range(3)), more=more)
    figures = {(each.name, each.label): each.values for each in seen}
    assert figures["tokens", "prompt_computed"] == (6.0,)
    assert figures["steps", ""] == (float(len(network.passes)),)
    assert sum(figures["queue_seconds", ""][:-1]) == 3
