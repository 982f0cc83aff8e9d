"""The answer cache: deterministic calls answered from a store, and computed once if they coincide.

Knows no protocol and no engine. A slow or lost store never fails a request, and holds it up by at
most `lookup_s` (twice, if it is lost between two calls): what does not answer in time is left to
end on its own, beside the request, and the rest of the flight goes without the store.

    key = answer_key(job, call, prompt.fingerprint, revision=card.revision)
    if key is None:                                 # not deterministic: run the job
        ...
    async with answers.flight(key, call.identity.tenant) as flight:
        if flight.answer is not None:               # play these as the engine's deltas
            deltas = relabel(flight.answer, job.job)
        else:                                       # run the job, keeping each accepted delta
            flight.keep(deltas, n=job.n)            # after the last finish; ignores bad ends
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from itertools import count
from typing import final

from tokenwire.core.answer_key import answer_key
from tokenwire.core.answer_record import Answer, condense, pack, relabel, unpack
from tokenwire.core.ports.store import Lease, Store
from tokenwire.core.store_calls import StoreCalls
from tokenwire.core.tokens import TokenDelta

__all__ = ("Answer", "AnswerCache", "Flight", "answer_key", "relabel")

Place = tuple[str, str]
"""Tenant and key."""

ANSWERS = "answers:"
LEASES = "answer-leases:"
"""Namespaces; the tenant follows."""

PAUSES = (0.02, 0.05, 0.1, 0.25)
"""Seconds between looks for the answer that another process is computing; then the last again."""


@final
class Flight:
    """One call's way to its answer. `answer` is the found one (no job in it: `relabel` it), or
    None: the caller computes it and says so with `keep`."""

    def __init__(self, place: Place, *, answer: Answer | None = None) -> None:
        self.answer = answer
        self.place = place
        self.record: Answer | None = None
        """What the caller computed, once it did."""
        self.landed: asyncio.Future[Answer | None] | None = None
        """What followers wait for, where this flight leads; None in it: it failed."""
        self.holder: str | None = None
        """Under which name it asked for a lease, and so may hold one."""

    def keep(self, deltas: Iterable[TokenDelta], *, n: int) -> None:
        """Hands the whole answer to those who wait for it, and to the store when the flight ends.
        Anything but `n` choices that all ended well is ignored."""
        self.record = condense(deltas, n)
        if self.record is not None:
            self.land(self.record)

    def land(self, answer: Answer | None) -> None:
        """Tells the followers. Only the first time counts."""
        if self.landed is not None and not self.landed.done():
            self.landed.set_result(answer)


@final
class AnswerCache:
    """`ttl_s`: how long an answer is kept. `lookup_s`: how long a request waits for the store.
    `follow_s`: how long it waits for an equal one that is being computed. `lease_s`: how long
    other processes believe that this one computes. Larger answers than `max_bytes` are not kept.
    The store stays the caller's to close."""

    def __init__(
        self,
        store: Store,
        ttl_s: float,
        *,
        lookup_s: float = 0.05,
        follow_s: float = 10.0,
        lease_s: float = 5.0,
        max_bytes: int = 4 * 1024 * 1024,
    ) -> None:
        self._store = store
        self._ttl_s = ttl_s
        self._follow_s = follow_s
        self._lease_s = lease_s
        self._max_bytes = max_bytes
        self._holder = secrets.token_hex(8)
        self._flights = count()
        self._leaders: dict[Place, asyncio.Future[Answer | None]] = {}
        self._calls = StoreCalls(lookup_s)

    async def lookup(self, key: str, tenant: str) -> Answer | None:
        """The kept answer, to be relabelled; None also where the store is lost or slow."""
        return (await self._find((tenant, key)))[1]

    async def store(
        self, key: str, tenant: str, deltas: Iterable[TokenDelta], *, n: int = 1
    ) -> None:
        """Keeps a whole answer; anything else is ignored. Waits at most `lookup_s`."""
        answer = condense(deltas, n)
        if answer is not None:
            await self._calls.ask(lambda: self._write((tenant, key), answer))

    @asynccontextmanager
    async def flight(self, key: str, tenant: str) -> AsyncIterator[Flight]:
        """One of several equal calls computes, the others wait for it. Where it fails, is cancelled
        or takes longer than `follow_s`, another goes on by itself. Other processes are asked for
        with a lease in the store, as far as the store can be reached."""
        place = (tenant, key)
        flight = await self._follow(place) or self._lead(place)
        try:
            if flight.landed is not None:
                await self._search(flight)
            yield flight
        finally:
            self._end(flight)

    async def close(self) -> None:
        """Ends what is under way beside requests. A second call does nothing."""
        await self._calls.close()

    async def _follow(self, place: Place) -> Flight | None:
        """What became of the equal call under way. None, without a pause after the last look:
        there is none (any more), and the caller may lead."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + self._follow_s
        while (landed := self._leaders.get(place)) is not None:
            await asyncio.wait((landed,), timeout=max(0.0, deadline - clock()))
            if not landed.done():
                return Flight(place)
            if (answer := landed.result()) is not None:
                return Flight(place, answer=answer)
            if self._leaders.get(place) is landed:
                del self._leaders[place]
        return None

    def _lead(self, place: Place) -> Flight:
        flight = Flight(place)
        flight.landed = asyncio.get_running_loop().create_future()
        self._leaders[place] = flight.landed
        return flight

    async def _search(self, flight: Flight) -> None:
        """Looks in the store, and waits there for another process that computes the same."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + self._follow_s
        is_reached, flight.answer = await self._find(flight.place)
        pauses = iter(PAUSES)
        has_waited = False
        while is_reached and flight.answer is None:
            flight.holder = flight.holder or f"{self._holder}-{next(self._flights)}"
            is_reached, granted = await self._calls.ask(lambda: self._lease(flight, self._lease_s))
            if not is_reached or (granted and not has_waited):
                break
            if not granted:
                if clock() >= deadline:
                    break
                await asyncio.sleep(next(pauses, PAUSES[-1]))
                has_waited = True
            # Why: even with the lease, the other one may have written since our last look.
            is_reached, flight.answer = await self._find(flight.place)
            if granted:
                break
        if flight.answer is not None:
            flight.land(flight.answer)

    def _end(self, flight: Flight) -> None:
        if flight.landed is not None:
            flight.land(None)
            if self._leaders.get(flight.place) is flight.landed:
                del self._leaders[flight.place]
        if flight.record is None and flight.holder is None:
            return
        self._calls.leave(lambda: self._settle(flight))

    async def _settle(self, flight: Flight) -> None:
        """Keeps, then releases: whoever gets the lease next finds the answer."""
        if flight.record is not None:
            await self._write(flight.place, flight.record)
        if flight.holder is not None:
            await self._lease(flight, 0)

    async def _find(self, place: Place) -> tuple[bool, Answer | None]:
        """Whether the store answered in time, and what."""
        tenant, key = place
        is_reached, data = await self._calls.ask(lambda: self._store.get(ANSWERS + tenant, key))
        return is_reached, None if data is None else unpack(data)

    async def _write(self, place: Place, answer: Answer) -> None:
        tenant, key = place
        data = pack(answer)
        if len(data) <= self._max_bytes:
            await self._store.set(ANSWERS + tenant, key, data, ttl_s=self._ttl_s)

    async def _lease(self, flight: Flight, ttl_s: float) -> bool:
        tenant, key = flight.place
        lease = Lease(flight.holder or "", ttl_s)
        return bool(await self._store.apply(lease, LEASES + tenant, key))
