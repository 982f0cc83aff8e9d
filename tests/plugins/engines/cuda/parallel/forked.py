"""Groups whose ranks are forked from a server that has torch imported, in place of torchrun's: a
start of eight takes a second. Each is the real rank, with a real line to the front."""

from __future__ import annotations

import multiprocessing
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

from tests.plugins.engines.cuda.parallel.ranks import PRELOADED
from tokenwire.plugins.engines.cuda.parallel.front.launching import Launched
from tokenwire.plugins.engines.cuda.parallel.order import read_order

__all__ = ("Forked",)


class Forked(Launched):
    """A `Launch`."""

    def __init__(self, path: Path, exited: Callable[[int], None]) -> None:
        ranks = read_order(path).settings.layout.gpus
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(PRELOADED)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self._exited = exited
        self._processes = [
            context.Process(target=_rank, args=(str(path), rank, ranks, port), daemon=True)
            for rank in range(ranks)
        ]
        threading.Thread(target=self._run, daemon=True).start()

    def end(self) -> None:
        for process in self._processes:
            if process.is_alive():
                process.kill()

    def _run(self) -> None:
        for process in self._processes:
            process.start()
        for process in self._processes:
            process.join()
        self._exited(max(abs(process.exitcode or 0) for process in self._processes))


def _rank(path: str, rank: int, ranks: int, port: int) -> None:
    """As torchrun starts it."""
    os.environ |= {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(ranks),
        "LOCAL_WORLD_SIZE": str(ranks),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    import torch

    from tokenwire.plugins.engines.cuda.parallel.rank import main, run

    torch.set_num_threads(1)
    os._exit(main([path], run))
