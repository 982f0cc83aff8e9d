"""Starts a group's launcher as a process, and ends it. Knows no rank and no connection."""

from __future__ import annotations

import subprocess
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias, final

__all__ = ("Launch", "Launched", "launch_process")

LAUNCHER: Final = "tokenwire.plugins.engines.cuda.parallel.launcher"
KILL_S: Final = 10.0
"""How long a launcher gets to end its ranks, before it is killed."""
STDERR: Final = 2


class Launched(ABC):
    """The processes of a group on this machine, or what stands for them."""

    @abstractmethod
    def end(self) -> None:
        """From any thread, any number of times. Does not wait."""


Launch: TypeAlias = Callable[[Path, Callable[[int], None]], Launched]
"""Starts what the order in a file says; the function is called from a thread, once, with the exit
code, when all of it has ended."""


def launch_process(order: Path, exited: Callable[[int], None]) -> Launched:
    return _Process(order, exited)


@final
class _Process(Launched):
    def __init__(self, order: Path, exited: Callable[[int], None]) -> None:
        # Why a pipe that nothing is written to: it closes when this process ends, however it does,
        # and the launcher sees that. Why a session: Ctrl-C is for the server, which drains.
        self._process = subprocess.Popen(
            [sys.executable, "-m", LAUNCHER, str(order)],
            stdin=subprocess.PIPE,
            stdout=STDERR,
            start_new_session=True,
        )
        self._exited = exited
        self._is_ending = threading.Event()
        threading.Thread(target=self._wait, name="tokenwire-launcher", daemon=True).start()
        threading.Thread(target=self._kill, name="tokenwire-launcher-end", daemon=True).start()

    def end(self) -> None:
        self._is_ending.set()

    def _wait(self) -> None:
        code = self._process.wait()
        self._is_ending.set()
        self._exited(code)

    def _kill(self) -> None:
        self._is_ending.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(KILL_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
