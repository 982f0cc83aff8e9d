"""Who runs and who waits: priority, then age; blocks taken, grown and given back. Knows no delta.

A choice that finds no free block sends the least urgent, youngest running choice back to wait;
what it said so far is kept, and its tokens count as prompt when it is admitted again. Those that
only wait for credit are sent back first, and are not admitted before credit comes.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence as Many
from typing import final

from tokenwire.core import blocks
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import EngineCard
from tokenwire.plugins.engines.mock.feed import BlockFeed
from tokenwire.plugins.engines.mock.pool import BlockPool
from tokenwire.plugins.engines.mock.sequence import JobState, Sequence
from tokenwire.plugins.engines.mock.settings import MockSettings

__all__ = ("Scheduler",)


@final
class Scheduler:
    def __init__(self, settings: MockSettings, card: EngineCard, feed: BlockFeed) -> None:
        self._settings = settings
        self._size = card.block_size
        self._root = bytes.fromhex(card.hash_root)
        self._pool = (
            BlockPool(settings.kv_blocks, card.block_size, feed) if settings.kv_blocks else None
        )
        self._waiting: list[tuple[int, int, Sequence]] = []
        self._waits = 0
        self.running: dict[int, Sequence] = {}

    @property
    def waiting(self) -> int:
        return self._waits

    @property
    def slots(self) -> int:
        """How many more choices could run."""
        return self._settings.max_running - len(self.running)

    @property
    def blocks_total(self) -> int:
        return self._settings.kv_blocks

    @property
    def blocks_free(self) -> int:
        return self._pool.free if self._pool is not None else 0

    def hashes(self) -> Many[bytes]:
        return self._pool.hashes() if self._pool is not None else ()

    def wait(self, sequence: Sequence) -> None:
        heapq.heappush(self._waiting, (*sequence.rank(), sequence))
        sequence.is_waiting = True
        self._waits += 1

    def admit(self, now: float) -> None:
        """Start those that wait, in order, while there are slots and blocks."""
        without_credit: list[tuple[int, int, Sequence]] = []
        while self._waiting and self.slots > 0:
            sequence = self._waiting[0][2]
            if not sequence.is_waiting:
                heapq.heappop(self._waiting)
                continue
            if sequence.outlet.is_blocked:
                without_credit.append(heapq.heappop(self._waiting))
                continue
            if not self._open(sequence):
                if self._unschedule_blocked():
                    continue
                break
            heapq.heappop(self._waiting)
            sequence.is_waiting = False
            self._waits -= 1
            self.running[sequence.order] = sequence
            state = sequence.state
            computed = len(state.job.prompt) - (state.cached or 0)
            settings = self._settings
            if settings.ttft_ms or settings.prompt_token_us:
                sequence.due = (
                    now + settings.ttft_ms / 1e3 + computed * settings.prompt_token_us / 1e6
                )
        for entry in without_credit:
            heapq.heappush(self._waiting, entry)

    def extend(self, sequence: Sequence) -> bool:
        """Room for one more token of a running choice; False: it was sent back to wait."""
        assert self._pool is not None
        assert sequence.holding is not None
        while sequence.capacity <= len(sequence.choice.output):
            if self._pool.grow(sequence.holding):
                sequence.capacity += self._size
                continue
            if self._unschedule_blocked():
                continue
            victim = max(self.running.values(), key=Sequence.rank)
            self._unschedule(victim)
            if victim is sequence:
                return False
        return True

    def _unschedule(self, victim: Sequence) -> None:
        self.release(victim)
        self.wait(victim)

    def _unschedule_blocked(self) -> bool:
        """Take the blocks of a choice that only waits for credit; whether there was one."""
        for sequence in self.running.values():
            if sequence.outlet.is_blocked:
                self._unschedule(sequence)
                return True
        return False

    def release(self, sequence: Sequence) -> None:
        """Stop running or waiting, and give back the blocks."""
        self.running.pop(sequence.order, None)
        # Why: a step that is going through all choices must pass over this one.
        sequence.capacity = 0
        if sequence.is_waiting:
            sequence.is_waiting = False
            self._waits -= 1
        if sequence.holding is not None and self._pool is not None:
            self._pool.close(sequence.holding, self._filled(sequence))
            sequence.holding = None

    def _open(self, sequence: Sequence) -> bool:
        state, pool = sequence.state, self._pool
        if pool is None:
            sequence.capacity = math.inf
            state.cached = 0
            return True
        tokens = sequence.tokens()
        chain = self._prompt_chain(state)
        if len(sequence.choice.output) > len(state.job.resume_ids):
            chain = list(self._chain(state, tokens))
        hit = pool.hit(chain)
        holding = pool.open(chain, len(tokens))
        if holding is None:
            return False
        sequence.holding = holding
        held = len(chain) + holding.private
        sequence.capacity = held * self._size - len(state.job.prompt)
        if state.cached is None:
            # Why: the last token is always computed, its logits are what the first id comes from.
            state.cached = min(hit, (len(tokens) - 1) // self._size) * self._size
            state.cached = min(state.cached, len(state.job.prompt))
        return True

    def _prompt_chain(self, state: JobState) -> list[bytes]:
        if state.hashes is None:
            ids = TokenIds(state.job.prompt + state.job.resume_ids)
            state.hashes = list(self._chain(state, ids))
        return state.hashes

    def _chain(self, state: JobState, ids: TokenIds) -> Many[bytes]:
        extras = blocks.extras(state.job, self._size)
        return list(blocks.chain(self._root, ids, self._size, extras))

    def _filled(self, sequence: Sequence) -> Many[bytes]:
        """The blocks that it filled since it was admitted: all but the last id were computed."""
        assert sequence.holding is not None
        known = sequence.holding.shared
        job, output = sequence.state.job, sequence.choice.output
        full = (len(job.prompt) + len(output) - 1) // self._size
        if full <= len(known):
            return ()
        start = len(known) * self._size - len(job.prompt)
        tail = job.prompt[start:] + output if start < 0 else output[start:]
        rest = TokenIds(tail[: (full - len(known)) * self._size])
        extras = blocks.extras(sequence.state.job, self._size)[len(known) :]
        parent = known[-1] if known else self._root
        return list(blocks.chain(parent, rest, self._size, extras))
