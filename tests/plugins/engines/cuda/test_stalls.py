"""Nobody waits for ever: where blocks are held by choices without credit, others still go on."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from tests.plugins.engines.cuda.driving import Answer, engine, job
from tokenwire.core.ports.engine import Engine
from tokenwire.core.tokens import Credit, TokenJob

pytestmark = pytest.mark.torch

PATIENCE_S = 30.0
CAP = 40


class Client:
    """Reads deltas while the engine runs, and gives up after `PATIENCE_S`."""

    def __init__(self, made: Engine) -> None:
        self.made = made
        self.found: dict[str, Answer] = {}
        self._heard = asyncio.Event()
        self._reading = asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        async for batch in self.made.batches():
            for delta in batch:
                self.found.setdefault(delta.job, Answer()).deltas.append(delta)
            self._heard.set()

    async def ended(self, *jobs: TokenJob) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not all(self._is_over(each.job) for each in jobs):
                self._heard.clear()
                await self._heard.wait()

    async def parked(self, blocks: int) -> None:
        """Until choices without credit hold so many blocks and nobody runs."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                status = self.made.status()
                held = status.kv_blocks_total - status.kv_blocks_free
                if not status.running and held >= blocks:
                    return
                await asyncio.sleep(0.01)

    async def close(self) -> None:
        await self.made.drain(0)
        with suppress(asyncio.CancelledError):
            await self._reading

    def _is_over(self, name: str) -> bool:
        return name in self.found and self.found[name].finish is not None


def small() -> Engine:
    """136 blocks of 4 tokens: one sequence of the whole context, and little more."""
    return engine(kv_gib=0.00013, credit_cap=CAP)


def test_one_without_credit_gives_its_blocks_to_one_that_waits() -> None:
    async def act() -> None:
        made = small()
        client = Client(made)
        slow = job("slow", range(2, 10), max_tokens=100, credit=0)
        made.submit([slow])
        await client.parked(12)
        quick = job("quick", [3] * 500, max_tokens=8)
        made.submit([quick])
        await client.ended(quick)
        made.control([Credit("slow", 1000)])
        await client.ended(slow)
        assert len(client.found["slow"].ids) == 100
        await client.close()

    asyncio.run(act())


def test_one_whose_credit_comes_goes_on_where_others_hold_all_blocks() -> None:
    async def act() -> None:
        made = small()
        client = Client(made)
        jobs = [
            job(f"slow{at}", [2 + at] * tokens, max_tokens=100, credit=0)
            for at, tokens in enumerate((61, 161, 205))
        ]
        for each, blocks in zip(jobs, (25, 75, 136), strict=True):
            made.submit([each])
            await client.parked(blocks)
        made.control([Credit("slow2", 1000)])
        await client.ended(jobs[2])
        for each in jobs[:2]:
            made.control([Credit(each.job, 1000)])
        await client.ended(*jobs)
        assert [len(client.found[each.job].ids) for each in jobs] == [100] * 3
        await client.close()

    asyncio.run(act())


def test_a_deadline_beyond_all_clocks_is_none() -> None:
    async def act() -> None:
        made = small()
        client = Client(made)
        slow = job("slow", range(2, 10), max_tokens=100, credit=0, deadline_ms=2**62)
        made.submit([slow])
        await client.parked(12)
        quick = job("quick", [3] * 8)
        made.submit([quick])
        await client.ended(quick)
        assert made.status().ready
        assert len(client.found["quick"].ids) == 12
        await client.close()

    asyncio.run(act())
