"""Which KV blocks the parts hold: of each for choosing among them, of all as one feed of events.

A block is held while any part holds it. Pure; only what lies on devices is counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import final

from tokenwire.core.tokens import BlockRemoved, BlockSnapshot, BlockStored, KvEvent
from tokenwire.plugins.engines.cuda.policy.events import EventLog

__all__ = ("HeldBlocks",)

DEVICE = "device"


@final
class HeldBlocks:
    def __init__(self) -> None:
        self.log = EventLog()
        self._parts: dict[int, set[bytes]] = {}
        self._counts: dict[bytes, int] = {}
        """By how many parts a block is held."""

    def hear(self, part: int, event: KvEvent) -> None:
        if event.tier != DEVICE:
            return
        match event:
            case BlockStored():
                self._store(part, [bytes.fromhex(each) for each in event.hashes], event.parent)
            case BlockRemoved():
                self._remove(part, [bytes.fromhex(each) for each in event.hashes])
            case BlockSnapshot():
                self._replace(part, {bytes.fromhex(each) for each in event.hashes})

    def drop(self, part: int) -> None:
        """It is gone, with all it held."""
        self._replace(part, set())
        self._parts.pop(part, None)

    def snapshot(self) -> BlockSnapshot:
        return self.log.snapshot(self._counts)

    def prefix(self, part: int, hashes: Iterable[bytes]) -> int:
        """How many of a chain's blocks the part holds, from its first on."""
        held, found = self._parts.get(part, set[bytes]()), 0
        for each in hashes:
            if each not in held:
                break
            found += 1
        return found

    def known(self, hashes: Iterable[bytes]) -> list[bytes]:
        """A chain's first blocks, as far as any part holds them."""
        found = []
        for each in hashes:
            if each not in self._counts:
                break
            found.append(each)
        return found

    def _store(self, part: int, hashes: Sequence[bytes], parent: str) -> None:
        """What is new to all goes out, in runs that are chains still."""
        held = self._parts.setdefault(part, set())
        before, run, root = bytes.fromhex(parent), list[bytes](), b""
        for each in hashes:
            is_new = each not in self._counts
            if each not in held:
                held.add(each)
                self._counts[each] = self._counts.get(each, 0) + 1
            if is_new:
                root = root if run else before
                run.append(each)
            elif run:
                self.log.stored(run, root)
                run = []
            before = each
        if run:
            self.log.stored(run, root)

    def _remove(self, part: int, hashes: Iterable[bytes]) -> None:
        held, gone = self._parts.setdefault(part, set()), []
        for each in hashes:
            if each in held:
                held.remove(each)
                self._counts[each] -= 1
                if not self._counts[each]:
                    del self._counts[each]
                    gone.append(each)
        if gone:
            self.log.removed(gone)

    def _replace(self, part: int, hashes: set[bytes]) -> None:
        held = self._parts.setdefault(part, set())
        self._remove(part, held - hashes)
        has_news = False
        for each in hashes - held:
            has_news |= each not in self._counts
            held.add(each)
            self._counts[each] = self._counts.get(each, 0) + 1
        if has_news:
            self.log.restarted(self._counts)
