"""A part of the check in a process of its own, whose findings come one by one. Knows no part.

A crash, a hang, or the end of a part's time costs what it had not found yet, and no other part: a
GPU that has refused an address serves no more in the process that asked for it.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ("Asked", "Found", "Part", "run", "tried")

PRELOADED = ["torch", "triton", "tokenwire.plugins.engines.cuda.build", "whole"]
LAST_WORDS_S = 5.0
"""For a process that has said all to end by itself."""


class Asked(NamedTuple):
    device: str
    """"cuda" or "cpu"."""
    small: bool = False
    """Tiny sizes: a rehearsal."""
    model: Path | None = None
    """A folder to measure beside the random ones."""
    shard: int = 0
    """Of `shards` processes that share the part."""
    shards: int = 1


Found = tuple[str, Any]
"""("broken", a law that is broken, in words), or another name and a value for the list of it."""
Part = Callable[[Asked], Iterator[Found]]
"""A function of a module's top level."""


def run(part: Part, asked: Asked, seconds: float) -> dict[str, Any]:
    """Lists of what it found, by name; "broken" is always there."""
    context = multiprocessing.get_context("forkserver")
    # Why: processes forked from one that has torch loaded start at once; it has no CUDA context.
    context.set_forkserver_preload(PRELOADED)
    begun, found = time.monotonic(), {"broken": []}
    every: dict[Connection, BaseProcess] = {}
    for shard in range(asked.shards):
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_main, args=(theirs, part, asked._replace(shard=shard)))
        process.start()
        theirs.close()
        every[ours] = process
    open_pipes = set(every)
    while open_pipes:
        ready = wait(list(open_pipes), max(seconds - (time.monotonic() - begun), 0))
        if not ready:
            found["broken"].append(f"out of time after {seconds:.0f} s; what it found is here")
            break
        for pipe in ready:
            assert isinstance(pipe, Connection)
            if not _heard(pipe, every[pipe], found):
                open_pipes.remove(pipe)
    for pipe, process in every.items():
        process.join(0 if pipe in open_pipes else LAST_WORDS_S)
        if process.is_alive():
            process.kill()
            process.join()
    return found


def tried(work: Iterator[Found]) -> Iterator[Found]:
    """What `work` finds; an exception of it is a broken law, and ends only this."""
    try:
        yield from work
    except Exception:
        yield "broken", traceback.format_exc()


def _heard(pipe: Connection, process: BaseProcess, found: dict[str, Any]) -> bool:
    """False: it was the last."""
    try:
        name, value = pipe.recv()
    except EOFError:
        process.join(LAST_WORDS_S)
        found["broken"].append(f"its process died: exit code {process.exitcode}")
        return False
    if name:
        found.setdefault(name, []).append(value)
    return bool(name)


def _main(pipe: Connection, part: Part, asked: Asked) -> None:
    for item in tried(part(asked)):
        pipe.send(item)
    pipe.send(("", None))
    sys.stdout.flush()
    sys.stderr.flush()
    # Why so: threads of an engine, or of NCCL, need not end by themselves.
    os._exit(0)
