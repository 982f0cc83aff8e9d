"""A trace of every step in Chrome's JSON (Trace Event Format, the array form), for chrome://tracing
or Perfetto. Knows no step: it is told names and times.

The file is valid JSON after every write, whenever the process ends: each write begins where the
closing bracket stood, and closes anew. It stops growing at its limit.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import final

from tokenwire.core.errors import ConfigError

__all__ = ("DEVICE", "LOOP", "Trace")

LOOP, DEVICE = 1, 2
NAMES = {LOOP: "loop", DEVICE: "device"}
BATCH = 128
"""Events that are written together."""
LIMIT = 64 << 20
END = b"\n]\n"


@final
class Trace:
    def __init__(self, path: str, limit: int = LIMIT) -> None:
        """Replaces what is there. Raises ConfigError where it cannot be written."""
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise ConfigError(f"engine cuda: trace: cannot write {path!r}: {error}") from error
        self._limit = limit
        self._process = os.getpid()
        self._at = 0
        self._events: list[str] = []
        self._is_full = False
        for row, name in NAMES.items():
            self._events.append(
                json.dumps(
                    {
                        "name": "thread_name",
                        "ph": "M",
                        "pid": self._process,
                        "tid": row,
                        "args": {"name": name},
                    }
                )
            )
        self._put(b"[\n" + self._taken())

    def span(self, name: str, row: int, begin: int, end: int, step: int = -1) -> None:
        """`begin` and `end` by perf_counter_ns."""
        args = f',"args":{{"step":{step}}}' if step >= 0 else ""
        self._add(
            f'{{"name":"{name}","ph":"X","ts":{begin / 1000:.3f},"dur":{(end - begin) / 1000:.3f},'
            f'"pid":{self._process},"tid":{row}{args}}}'
        )

    def count(self, name: str, at: int, value: int) -> None:
        self._add(
            f'{{"name":"{name}","ph":"C","ts":{at / 1000:.3f},"pid":{self._process},'
            f'"args":{{"{name}":{value}}}}}'
        )

    def step(
        self, number: int, times: tuple[int, int, int, int], read: int, brought: int, end: int
    ) -> None:
        """A step that was retired. `times`: its launch, the end of preparing, and the device's
        begin and end; then when its results were asked for, and there, and brought."""
        launch, prepared, began, ended = times
        self.span("prepare", LOOP, launch, prepared, number)
        self.span("device", DEVICE, began, ended or brought, number)
        self.span("results", LOOP, read, brought, number)
        self.span("deliver", LOOP, brought, end, number)

    def flush(self) -> None:
        """Write what is held. Costs a system call: for when there is nothing else to do."""
        if self._events and not self._is_full:
            self._put(b",\n" + self._taken())

    def close(self) -> None:
        self.flush()
        self._is_full = True
        os.close(self._file)

    def _add(self, event: str) -> None:
        if self._is_full:
            return
        self._events.append(event)
        if len(self._events) >= BATCH:
            self.flush()

    def _taken(self) -> bytes:
        text = ",\n".join(self._events).encode()
        self._events.clear()
        return text

    def _put(self, data: bytes) -> None:
        if self._at + len(data) > self._limit and self._at:
            self._is_full = True
            return
        try:
            # Why in one call: whenever the process is killed, the bracket is there.
            os.pwrite(self._file, data + END, self._at)
        except OSError:
            # Why silent: a full disk must not end what the trace only watches.
            self._is_full = True
            return
        self._at += len(data)
