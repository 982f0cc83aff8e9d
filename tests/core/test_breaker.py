"""The breaker: opens after losses in a row, costs nobody time while open, closes by a probe."""

from __future__ import annotations

import asyncio

import pytest

from tokenwire.core.breaker import Breaker
from tokenwire.core.errors import StoreError


class Far:
    """Something that can be lost, and a clock."""

    def __init__(self):
        self.now = 0.0
        self.error = None
        self.probes = 0

    async def call(self):
        if self.error is not None:
            raise self.error
        return "fine"

    async def probe(self):
        self.probes += 1
        await self.call()

    def breaker(self, **settings):
        return Breaker(
            "the thing",
            timeout_s=20.0,
            probe=self.probe,
            losses=(EOFError,),
            clock=lambda: self.now,
            **settings,
        )


async def fail(breaker, far, times=3):
    far.error = far.error or ConnectionError("gone")
    for _ in range(times):
        with pytest.raises(StoreError, match="the thing is not reachable"):
            await breaker.run(far.call)


async def settle():
    for _ in range(5):
        await asyncio.sleep(0)


def run(check):
    asyncio.run(check())


@pytest.mark.parametrize("error", [ConnectionError("x"), TimeoutError(), EOFError(), OSError(5)])
def test_losses_in_a_row_open_it(error):
    async def check():
        far = Far()
        far.error = error
        breaker = far.breaker()
        await fail(breaker, far, 2)
        assert not breaker.is_open
        await fail(breaker, far, 1)
        assert breaker.is_open

    run(check)


def test_a_success_between_starts_the_count_anew():
    async def check():
        far = Far()
        breaker = far.breaker()
        for _ in range(4):
            await fail(breaker, far, 2)
            far.error = None
            assert await breaker.run(far.call) == "fine"
        assert not breaker.is_open

    run(check)


def test_other_errors_pass_through_and_count_for_nothing():
    async def check():
        far = Far()
        far.error = KeyError("ours")
        breaker = far.breaker()
        for _ in range(5):
            with pytest.raises(KeyError):
                await breaker.run(far.call)
        assert not breaker.is_open

    run(check)


def test_open_it_calls_nothing_and_probes_beside_once_rested():
    async def check():
        far = Far()
        breaker = far.breaker(rest_s=1.0)
        await fail(breaker, far)
        far.error = None
        with pytest.raises(StoreError):
            breaker.run(far.call).send(None)
        await settle()
        assert far.probes == 0
        far.now = 1.0
        for _ in range(3):
            with pytest.raises(StoreError):
                breaker.run(far.call).send(None)
        await settle()
        assert far.probes == 1
        assert await breaker.run(far.call) == "fine"

    run(check)


def test_a_probe_that_fails_is_followed_by_another_rest():
    async def check():
        far = Far()
        breaker = far.breaker(rest_s=1.0)
        await fail(breaker, far)
        for probes in (1, 2, 3):
            far.now += 1.0
            with pytest.raises(StoreError):
                await breaker.run(far.call)
            await settle()
            with pytest.raises(StoreError):
                await breaker.run(far.call)
            await settle()
            assert far.probes == probes

    run(check)


def test_a_call_that_never_ends_is_ended():
    async def check():
        far = Far()
        breaker = far.breaker()
        with pytest.raises(StoreError, match="TimeoutError"):
            await breaker.run(asyncio.Event().wait, timeout_s=0.001)

    run(check)


def test_closing_ends_a_probe_under_way():
    async def check():
        far = Far()
        breaker = far.breaker(rest_s=0.0)
        await fail(breaker, far)
        ended = []

        async def stuck():
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(True)

        far.call = stuck
        with pytest.raises(StoreError):
            await breaker.run(far.call)
        await settle()
        await breaker.close()
        await breaker.close()
        assert ended == [True]

    run(check)
