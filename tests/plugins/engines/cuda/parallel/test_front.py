"""What the front makes of ranks that are lost, late, silent or broken; mock engines in threads."""

from __future__ import annotations

import asyncio
import re
import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.engines.cuda.parallel.stubs import Plan, groups
from tokenwire.core.errors import ConfigError
from tokenwire.core.host import lone_services
from tokenwire.core.ports.engine import Engine
from tokenwire.core.threaded_engine import Worker
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import (
    Abort,
    EngineCard,
    FinishCause,
    JobSampling,
    JobStopping,
    TokenDelta,
    TokenJob,
)
from tokenwire.plugins.engines.cuda.parallel.frames import Enter, Hello, encode
from tokenwire.plugins.engines.cuda.parallel.front.launching import Launched
from tokenwire.plugins.engines.cuda.parallel.order import Order, read_order
from tokenwire.plugins.engines.mock.build import build as build_mock
from tokenwire.plugins.engines.mock.settings import MockSettings

ENDLESS = JobStopping(ignore_eos=True)
SLOW = MockSettings(token_ms=5)
PATIENCE_S = 90


def looped(test: Callable[..., Any]) -> Callable[..., None]:
    """A test that is a coroutine, on a loop of its own."""

    @wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        asyncio.run(test(*arguments, **named))

    return run


def job(name: str, *, prompt: int = 40, first: int = 1, **fields: object) -> TokenJob:
    base = {"stopping": JobStopping(max_tokens=4, ignore_eos=True)}
    return TokenJob(
        job=name,
        model="m",
        prompt=TokenIds([first, *(index % 150 for index in range(1, prompt))]),
        sampling=JobSampling(temperature=0),
        **(base | fields),
    )


class Reader:
    """All that an engine says, by job."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.deltas: dict[str, list[TokenDelta]] = {}
        self.moved = asyncio.Event()

    async def read(self) -> None:
        async for batch in self.engine.batches():
            for delta in batch:
                self.deltas.setdefault(delta.job, []).append(delta)
            self.moved.set()

    async def until(self, done) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not done():
                self.moved.clear()
                try:
                    await asyncio.wait_for(self.moved.wait(), 0.02)
                except TimeoutError:
                    continue

    async def begins(self, name: str) -> None:
        await self.until(lambda: self.deltas.get(name))

    async def ends(self, name: str):
        await self.until(lambda: self.deltas.get(name) and self.deltas[name][-1].finish)
        return self.deltas[name][-1]

    async def ready(self, *, is_ready: bool = True) -> None:
        await self.until(lambda: self.engine.status().ready is is_ready)


@asynccontextmanager
async def reading(plan: Plan, **fields: object) -> AsyncIterator[Reader]:
    engine = await asyncio.to_thread(groups, plan, **fields)
    reader = Reader(engine)
    task = asyncio.create_task(reader.read())
    try:
        yield reader
    finally:
        await engine.drain(0)
        await task
        assert await asyncio.to_thread(engine._worker.join, PATIENCE_S)


class Held(Plan):
    """Leaders are ready when the gate is open."""

    def __init__(self, mock: MockSettings, **shape: int) -> None:
        super().__init__(mock, **shape)
        self.gate = threading.Event()
        self.gate.set()

    def make(self, order: Order) -> tuple[Worker, EngineCard, int]:
        self.gate.wait(PATIENCE_S)
        return super().make(order)


@looped
async def test_a_lost_rank_ends_its_groups_jobs_and_the_group_comes_back() -> None:
    plan = Held(SLOW, followers=1)
    async with reading(plan) as reader:
        plan.gate.clear()
        reader.engine.submit([job("a", stopping=ENDLESS)])
        await reader.begins("a")
        plan.drop(1)
        last = await reader.ends("a")
        assert (last.finish.cause, last.finish.retryable) == (FinishCause.LOST, True)
        assert "rank 1 of 2 is gone" in last.finish.message
        made = [id for delta in reader.deltas["a"] for id in delta.ids]
        assert (last.at, last.counts.generated) == (len(made), len(made))
        assert last.counts.prompt == 40
        status = reader.engine.status()
        assert not status.ready
        assert "rank 1 of 2 is gone" in status.reason
        reader.engine.submit([job("b")])
        refused = await reader.ends("b")
        assert (refused.finish.cause, refused.finish.retryable) == (FinishCause.LOST, True)
        again = r"rank 1 of 2 is gone.*; it is starting again"
        await reader.until(lambda: re.search(again, reader.engine.status().reason) is not None)
        plan.gate.set()
        await reader.ready()
        reader.engine.submit([job("c")])
        assert (await reader.ends("c")).finish.cause is FinishCause.MAX
        assert len(plan.started) == 2
        assert reader.engine.status().about["starts"] == 2


@looped
async def test_other_instances_go_on() -> None:
    plan = Plan(SLOW)
    async with reading(plan, instance_count=2) as reader:
        reader.engine.submit([job("a", stopping=ENDLESS), job("b", stopping=ENDLESS)])
        await reader.begins("a")
        await reader.begins("b")
        plan.started[0].lines[0].close()
        lost = await reader.ends("a")
        assert "rank 0 of 1 of group 0 is gone" in lost.finish.message
        status = reader.engine.status()
        assert status.ready
        assert status.about["instances_ready"] == 1
        seen = len(reader.deltas["b"])
        await reader.until(lambda: len(reader.deltas["b"]) > seen + 2)
        reader.engine.submit([job("c")])
        assert (await reader.ends("c")).finish.cause is FinishCause.MAX
        reader.engine.control([Abort("b")])
        assert (await reader.ends("b")).finish.cause is FinishCause.CLIENT


@looped
async def test_what_a_rank_says_while_it_loads_is_the_error() -> None:
    plan = Plan(SLOW)
    plan.fails = "model.layers.3.mlp.up_proj.weight is missing"
    with pytest.raises(ConfigError, match=r"engine cuda: rank 0 of 1: model\.layers\.3"):
        await asyncio.to_thread(groups, plan)
    assert not any(thread.is_alive() for thread in plan.started[0]._threads)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("silent", r"group 0: rank 1 of 2 said nothing for 0\.3 s .* \(1 had begun\): look"),
        ("absent", r"group 0: rank 1 of 2 said nothing for 0\.3 s .* \(none of them had begun\)"),
    ],
)
@looped
async def test_a_rank_that_never_comes_is_named(kind: str, words: str) -> None:
    plan = Plan(SLOW, parts=2)
    setattr(plan, kind, [1])
    with pytest.raises(ConfigError, match=words):
        await asyncio.to_thread(groups, plan, start_timeout=0.3)


@looped
async def test_a_folder_that_no_socket_fits_in_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("x" * 100)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    plan = Plan(SLOW)
    with pytest.raises(ConfigError, match=r"/front is longer than .* set TMPDIR to a folder"):
        await asyncio.to_thread(groups, plan)
    assert not plan.started
    assert not list(long.iterdir())


@looped
async def test_a_rendezvous_of_another_machine_is_named() -> None:
    plan = Plan(SLOW, parts=2)
    words = (
        r"rendezvous is 203\.0\.113\.7:9, .* cannot listen there: .*: name an address of its own"
    )
    with pytest.raises(ConfigError, match=words):
        await asyncio.to_thread(groups, plan, nodes=2, rendezvous="203.0.113.7:9")
    assert not plan.started


@looped
async def test_a_restart_that_fails_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan(SLOW)
    async with reading(plan) as reader:
        plan.fails = "no memory is left"
        plan.drop(0)
        await reader.until(lambda: "no memory is left" in reader.engine.status().reason)
        plan.fails = ""
        await reader.ready()
        assert len(plan.started) == 3


@looped
async def test_a_group_that_came_back_smaller_is_not_served() -> None:
    plan = Plan(MockSettings(context_length=512))
    async with reading(plan) as reader:
        plan.mock = MockSettings(context_length=256)
        plan.drop(0)
        words = "its memory holds 256 tokens of context now, and 512 were promised"
        await reader.until(lambda: words in reader.engine.status().reason)


@looped
async def test_other_parts_are_woken_after_the_jobs_are_there() -> None:
    plan = Plan(MockSettings(), parts=3)
    async with reading(plan) as reader:
        for index in range(3):
            reader.engine.submit([job(f"j{index}")])
            await reader.ends(f"j{index}")
        await reader.until(lambda: len(plan.started[0].waves) == 9)
        for rank in range(3):
            assert [wave for each, wave in plan.started[0].waves if each == rank] == [1, 2, 3]


@looped
async def test_a_prompt_goes_where_its_prefix_is() -> None:
    plan = Plan(MockSettings(), parts=2)
    async with reading(plan) as reader:
        parts = reader.engine._worker._groups.instances[0].parts
        reader.engine.submit([job("a", prompt=64), job("b", prompt=64, first=9)])
        await reader.ends("a")
        await reader.ends("b")
        held = reader.engine._worker._groups.held
        await reader.until(lambda: len(held._counts) == 8)
        for index in range(6):
            reader.engine.submit([job(f"c{index}", prompt=64, first=9)])
            last = await reader.ends(f"c{index}")
            assert last.counts.cached >= 48, "the other part would have found nothing"
        assert all(not len(part.jobs) for part in parts)


@looped
async def test_status_adds_up_and_counters_never_fall() -> None:
    plan = Plan(SLOW, parts=2)
    async with reading(plan) as reader:
        status = reader.engine.status()
        assert status.card.parallel == "DEP_2"
        assert status.kv_blocks_total == 2 * 65536
        assert status.about["layout"] == "DEP_2"
        assert (status.about["ranks"], status.about["instances"]) == (2, 1)
        reader.engine.submit([job("a", stopping=ENDLESS), job("b", stopping=ENDLESS)])
        await reader.begins("a")
        await reader.begins("b")
        assert reader.engine.status().running == 2


@looped
async def test_a_job_too_large_for_a_frame_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from tokenwire.plugins.engines.cuda.parallel import frames

    async with reading(Plan(MockSettings())) as reader:
        monkeypatch.setattr(frames, "MOST", 2000)
        reader.engine.submit([job("a"), job("big", prompt=1000), job("b")])
        assert (await reader.ends("a")).finish.cause is FinishCause.MAX
        assert (await reader.ends("b")).finish.cause is FinishCause.MAX
        refused = (await reader.ends("big")).finish
        assert refused.cause is FinishCause.REFUSED
        assert "the job is too large" in refused.message


@pytest.mark.parametrize("said", [b"\xff\xff\xff\xff", b"\x03\0\0\0abc", b"\x01\0\0\0\x80"])
@looped
async def test_strangers_are_closed(said: bytes) -> None:
    plan = Plan(MockSettings())
    async with reading(plan) as reader:
        path = plan.started[0].order.front.removeprefix("unix:")
        stranger = socket.socket(socket.AF_UNIX)
        stranger.settimeout(PATIENCE_S)

        def ask() -> bytes:
            with stranger:
                stranger.connect(path)
                stranger.sendall(said)
                return stranger.recv(1)

        assert await asyncio.to_thread(ask) == b""
        reader.engine.submit([job("a")])
        assert (await reader.ends("a")).finish.cause is FinishCause.MAX


class Deaf(Launched):
    """A leader that says Hello and reads nothing, ever."""

    def __init__(self, path: Path, exited: Callable[[int], None]) -> None:
        order = read_order(path)
        card = build_mock(MockSettings(context_length=32768), lone_services()).status().card
        self._exited = exited
        self.connection = socket.socket(socket.AF_UNIX)
        self.connection.connect(order.front.removeprefix("unix:"))
        for frame in (Enter(order.token, 0, 0, ""), Hello(0, card, 8)):
            self.connection.sendall(encode(frame))

    def end(self) -> None:
        if self.connection.fileno() >= 0:
            self.connection.close()
            self._exited(0)


class DeafPlan(Plan):
    def launch(self, path: Path, exited: Callable[[int], None]) -> Launched:
        self.started.append(Deaf(path, exited))
        return self.started[-1]


@looped
async def test_a_leader_that_reads_nothing_blocks_nobody() -> None:
    plan = DeafPlan(MockSettings())
    async with reading(plan) as reader:
        jobs = [job(f"j{index}", prompt=20_000) for index in range(100)]
        assert sum(4 * len(each.prompt) for each in jobs) > 7_000_000, "no socket holds as much"
        for each in jobs:
            reader.engine.submit([each])
            reader.engine.control([Abort(each.job)])
        assert reader.engine.status().waiting == 100
        plan.started[0].end()
        for each in jobs:
            assert (await reader.ends(each.job)).finish.cause is FinishCause.LOST
