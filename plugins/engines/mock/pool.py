"""The mock's KV cache: hash-chained blocks, reference counts, LRU. Knows no job and no time.

A block with an identity is referenced (somebody runs on it) or idle (kept until its room is
needed); private blocks hold what is not a full block yet.
total >= referenced + idle + private, always.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import final

from tokenwire.plugins.engines.mock.feed import BlockFeed

__all__ = ("BlockPool", "Holding")


@final
class Holding:
    """What one sequence holds."""

    __slots__ = ("private", "shared")

    def __init__(self, shared: list[bytes], private: int) -> None:
        self.shared = shared
        self.private = private


@final
class BlockPool:
    def __init__(self, total: int, size: int, feed: BlockFeed) -> None:
        self.total = total
        self.size = size
        self._feed = feed
        self._references: dict[bytes, int] = {}
        # Why no dict: to look for its first key takes as long as keys were deleted before it.
        self._idle: OrderedDict[bytes, None] = OrderedDict()
        self._private = 0

    @property
    def free(self) -> int:
        """Blocks that are free or could be made so."""
        return self.total - len(self._references) - self._private

    def hashes(self) -> tuple[bytes, ...]:
        return (*self._references, *self._idle)

    def hit(self, chain: Sequence[bytes]) -> int:
        """How many blocks of the chain are here, from its start."""
        for index, identity in enumerate(chain):
            if identity not in self._references and identity not in self._idle:
                return index
        return len(chain)

    def open(self, chain: Sequence[bytes], tokens: int) -> Holding | None:
        """Hold the blocks of `tokens` tokens, the full ones known by `chain`; None: no room."""
        references, idle = self._references, self._idle
        private = max(-(-tokens // self.size), 1) - len(chain)
        unheld = [identity for identity in chain if identity not in references]
        if len(unheld) + private > self.free:
            return None
        fresh: set[bytes] = set()
        for identity in unheld:
            if identity in idle:
                del idle[identity]
                references[identity] = 0
            else:
                fresh.add(identity)
        self._make_room(len(fresh) + private)
        for identity in chain:
            references[identity] = references.get(identity, 0) + 1
        self._private += private
        self._announce(chain, fresh, b"")
        return Holding(list(chain), private)

    def grow(self, holding: Holding) -> bool:
        """One more block for a sequence; False: no room."""
        if self.free < 1:
            return False
        self._make_room(1)
        self._private += 1
        holding.private += 1
        return True

    def close(self, holding: Holding, filled: Sequence[bytes]) -> None:
        """Let go. `filled`: the blocks that the sequence filled after those it opened with."""
        self._private -= holding.private
        fresh = {
            identity
            for identity in filled
            if identity not in self._references and identity not in self._idle
        }
        self._announce(filled, fresh, holding.shared[-1] if holding.shared else b"")
        # Why backwards: the deepest block of a chain must go first, it is of no use without others.
        for identity in reversed(filled):
            if identity not in self._references:
                self._idle.pop(identity, None)
                self._idle[identity] = None
        references = self._references
        for identity in reversed(holding.shared):
            left = references[identity] - 1
            if left:
                references[identity] = left
            else:
                del references[identity]
                self._idle[identity] = None
        holding.shared, holding.private = [], 0

    def _announce(self, chain: Sequence[bytes], fresh: set[bytes], parent: bytes) -> None:
        """Tell of the new blocks of a chain: each unbroken run after the block before it."""
        if not fresh:
            return
        if len(fresh) == len(chain):
            self._feed.stored(chain, parent)
            return
        run: list[bytes] = []
        for identity in chain:
            if identity in fresh:
                run.append(identity)
                continue
            if run:
                self._feed.stored(run, parent)
                run = []
            parent = identity
        if run:
            self._feed.stored(run, parent)

    def _make_room(self, blocks: int) -> None:
        used = len(self._references) + len(self._idle) + self._private
        gone: list[bytes] = []
        for _ in range(used + blocks - self.total):
            gone.append(self._idle.popitem(last=False)[0])
        if gone:
            self._feed.removed(gone)
