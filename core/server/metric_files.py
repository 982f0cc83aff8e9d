"""Snapshots of the workers of one server, by file, so that any of them can answer for all.

A file outlives its worker: counters never go back when a worker dies. Its gauges go stale.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import final

import msgspec

from tokenwire.core.server.tally import Snapshot

__all__ = ("STALE_S", "MetricFiles")

STALE_S = 5.0
"""Gauges of a snapshot older than this are of a worker that is gone."""
SUFFIX = ".metrics"


@final
class MetricFiles:
    """One worker's hand in the common folder, which only this user can read."""

    def __init__(self, folder: Path, name: str) -> None:
        """`name` is used once: a worker that replaces a dead one has another."""
        self._folder = folder
        self._own = folder / f"{name}{SUFFIX}"
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(Snapshot).decode

    def write(self, snapshot: Snapshot) -> None:
        """Replaces the last one at once. Raises OSError."""
        fresh = self._own.with_suffix(".new")
        fresh.write_bytes(self._encode(snapshot))
        os.replace(fresh, self._own)

    def others(self) -> tuple[Snapshot, ...]:
        """What the other workers, living and dead, wrote last."""
        found = []
        for path in sorted(self._folder.glob(f"*{SUFFIX}")):
            if path != self._own:
                found.append(self._decode(path.read_bytes()))
        return tuple(found)
