"""A rank's connection to its front: frames in, frames out, each side in a thread of its own.

When the front is gone there is nobody to compute for: the process ends at once, whatever it is
doing. Knows no model.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from queue import SimpleQueue
from typing import Final, TypeAlias, final

from tokenwire.core.errors import ConfigError
from tokenwire.plugins.engines.cuda.parallel.frames import (
    Beat,
    Enter,
    Failed,
    FromFront,
    FromRank,
    Progress,
    Splitter,
    encode,
    read_front,
)
from tokenwire.plugins.engines.cuda.parallel.order import Order

__all__ = ("GONE", "Line")

GONE: Final = 3
"""The exit code of a rank whose front is gone."""
CHUNK: Final = 1 << 20
CONNECT_S: Final = 30.0
FLUSH_S: Final = 10.0
BEAT_S: Final = 1.0
"""How often a rank says that it runs, whatever else it says."""

Item: TypeAlias = "bytes | threading.Event"


def _exit() -> None:
    os._exit(GONE)


@final
class Line:
    def __init__(self, connection: socket.socket, *, gone: Callable[[], None] = _exit) -> None:
        """`gone` is called from a thread, once, when the front has closed the connection."""
        self._connection = connection
        self._gone = gone
        self._is_closed = False
        self._over = threading.Event()
        self._out: SimpleQueue[Item] = SimpleQueue()
        self._in: SimpleQueue[FromFront | None] = SimpleQueue()
        for run in (self._write, self._read):
            threading.Thread(target=run, name="tokenwire-line", daemon=True).start()

    @classmethod
    def enter(cls, order: Order, rank: int, *, gone: Callable[[], None] = _exit) -> Line:
        """Connects and says who it is. Raises ConfigError where there is no front."""
        try:
            connection = _connect(order.front)
        except OSError as error:
            raise ConfigError(
                f"rank {rank}: the front at {order.front} cannot be reached: {error}"
            ) from error
        line = cls(connection, gone=gone)
        line.send(Enter(order.token, rank, os.getpid(), socket.gethostname()))
        threading.Thread(target=line._beat, name="tokenwire-beat", daemon=True).start()
        return line

    def send(self, frame: FromRank) -> None:
        """From any thread; never blocks. The order is kept."""
        self._out.put(encode(frame))

    def progress(self, done: int, total: int) -> None:
        """Bytes of the weights that are loaded."""
        self.send(Progress(done=done, total=total))

    def fail(self, text: str) -> None:
        """The last word: why this rank cannot go on."""
        self.send(Failed(text))
        self.close()

    def frames(self) -> Iterator[FromFront]:
        """What the front says, until it is gone. Has one reader."""
        while (frame := self._in.get()) is not None:
            yield frame

    def end(self) -> None:
        """From any thread: `frames` ends."""
        self._in.put(None)

    def close(self) -> None:
        """Sends what there is, and closes."""
        self._is_closed = True
        self._over.set()
        sent = threading.Event()
        self._out.put(sent)
        sent.wait(FLUSH_S)
        # Why suppressed: the front may have closed it first.
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()

    def _beat(self) -> None:
        """In a thread. Why: a process that is stopped, or whose machine is gone, closes nothing."""
        while not self._over.wait(BEAT_S):
            self.send(Beat())

    def _write(self) -> None:
        while True:
            item = self._out.get()
            if isinstance(item, threading.Event):
                item.set()
                continue
            try:
                self._connection.sendall(item)
            except OSError:
                # Why nothing: the reading thread sees the end too, and says so. What comes later
                # is taken, so that whoever waits for it goes on.
                continue

    def _read(self) -> None:
        splitter = Splitter()
        splitter.trust()
        try:
            while data := self._connection.recv(CHUNK):
                splitter.feed(data)
                while (frame := splitter.next()) is not None:
                    self._in.put(read_front(frame))
        except (OSError, ValueError):
            # Why both: a broken connection and one that makes no sense are the same end.
            pass
        self._in.put(None)
        if not self._is_closed:
            self._gone()


def _connect(front: str) -> socket.socket:
    kind, _, rest = front.partition(":")
    if kind == "unix":
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.connect(rest)
        return connection
    host, _, port = rest.rpartition(":")
    connection = socket.create_connection((host, int(port)), timeout=CONNECT_S)
    connection.settimeout(None)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection
