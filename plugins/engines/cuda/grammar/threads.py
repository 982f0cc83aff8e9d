"""A few threads that compile, and hold up nobody's exit. Knows no grammar.

Why not a ThreadPoolExecutor: the interpreter waits for its threads when it ends, and a library that
is minutes deep in somebody's schema cannot be told to stop.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Generic, TypeVar, final

__all__ = ("Threads",)

T = TypeVar("T")


@final
class Threads(Generic[T]):
    def __init__(self, count: int, name: str) -> None:
        self._count = count
        self._name = name
        self._lock = Lock()
        self._started = 0
        self._is_closed = False
        self._queue: SimpleQueue[tuple[Future[T], Callable[[], T]] | None] = SimpleQueue()

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Do it in a thread. The future is cancelled where they were closed before it began; what
        else than an Exception it raises (a library's panic) is a RuntimeError there."""
        future: Future[T] = Future()
        with self._lock:
            if self._is_closed:
                future.cancel()
                return future
            if self._started < self._count:
                self._started += 1
                name = f"{self._name}-{self._started}"
                Thread(target=self._run, name=name, daemon=True).start()
            self._queue.put((future, work))
        return future

    def close(self) -> None:
        """Begin nothing more; wait for nothing."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            for _ in range(self._started):
                self._queue.put(None)

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            future, work = item
            if self._is_closed:
                future.cancel()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                result = work()
            except Exception as error:
                future.set_exception(error)
            except BaseException as error:
                wrapped = RuntimeError(f"{type(error).__name__}: {error}")
                future.set_exception(wrapped)
            else:
                future.set_result(result)
