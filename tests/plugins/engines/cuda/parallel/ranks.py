"""Runs one function on several gloo ranks, each a process, and gives back what each returns.

Processes are forked from a server that has torch and the engine imported, so a world of four costs
a tenth of a second. A rank that raises fails the test with its text; one that hangs is ended.
"""

from __future__ import annotations

import faulthandler
import multiprocessing
import pickle
import tempfile
import time
import traceback
from collections.abc import Callable
from datetime import timedelta
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from tokenwire.core.cost.layout import Layout

__all__ = ("run_ranks",)

P = ParamSpec("P")
T = TypeVar("T")

PRELOADED = [
    "torch",
    "torch.distributed",
    "tokenwire.plugins.engines.cuda.build",
    "tokenwire.plugins.engines.cuda.load",
    "tokenwire.plugins.engines.cuda.parallel.mesh",
]


def run_ranks(
    layout: str,
    function: Callable[Concatenate[Any, P], T],
    *args: P.args,
    timeout_s: float = 90.0,
) -> list[T]:
    """`function(mesh, *args)` of a module's top level, on every rank of `layout` ("DEP_4", ...)."""
    shape = Layout.named(layout)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / "store")
        pipes: list[Connection] = []
        processes = []
        for rank in range(shape.gpus):
            ours, theirs = context.Pipe(duplex=False)
            process = context.Process(
                target=_main,
                args=(theirs, store, layout, rank, timeout_s, function, args),
                daemon=True,
            )
            process.start()
            theirs.close()
            pipes.append(ours)
            processes.append(process)
        try:
            return _collect(pipes, timeout_s)
        finally:
            for process in processes:
                process.join(0.5)
                if process.is_alive():
                    process.kill()
                    process.join()


def _collect(pipes: list[Connection], timeout_s: float) -> list[Any]:
    """Raises the first failure that comes: what the others say of it later is its echo."""
    found: dict[int, Any] = {}
    end = time.monotonic() + timeout_s
    while len(found) < len(pipes):
        left = [pipe for rank, pipe in enumerate(pipes) if rank not in found]
        ready = wait(left, max(end - time.monotonic(), 0))
        if not ready:
            raise TimeoutError(f"ranks {[pipes.index(pipe) for pipe in left]} gave nothing in time")
        for pipe in ready:
            assert isinstance(pipe, Connection)
            rank = pipes.index(pipe)
            try:
                is_well, value = pickle.loads(pipe.recv_bytes())
            except EOFError:
                raise AssertionError(f"rank {rank} died") from None
            if not is_well:
                raise AssertionError(f"rank {rank}: {value}")
            found[rank] = value
    return [found[rank] for rank in range(len(pipes))]


def _main(
    pipe: Connection,
    store: str,
    layout: str,
    rank: int,
    timeout_s: float,
    function: Callable[..., Any],
    args: Any,
) -> None:
    import torch
    import torch.distributed as dist

    from tokenwire.plugins.engines.cuda.parallel.mesh import leave, mesh_of

    torch.set_num_threads(1)
    shape = Layout.named(layout)
    # Why: a rank that hangs is ended from outside, and this is its one chance to say where.
    faulthandler.dump_traceback_later(timeout_s * 0.95)
    try:
        dist.init_process_group(
            "gloo",
            init_method=f"file://{store}",
            rank=rank,
            world_size=shape.gpus,
            timeout=timedelta(seconds=60),
        )
        value = function(mesh_of(shape, rank), *args)
        sent = pickle.dumps((True, value))
    except BaseException:
        sent = pickle.dumps((False, traceback.format_exc()))
    pipe.send_bytes(sent)
    if sent and pickle.loads(sent)[0]:
        dist.barrier()
        leave()
    faulthandler.cancel_dump_traceback_later()
