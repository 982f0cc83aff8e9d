"""A thread that stands for a GPU's stream on a CPU: it takes work in order. Knows no step."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar, final

__all__ = ("Stream",)

P = ParamSpec("P")
T = TypeVar("T")


@final
class Stream(ThreadPoolExecutor):
    def __init__(self, *, is_shared: bool = False) -> None:
        """`is_shared`: others make the same passes, so that after one that failed here no later
        one may begin: they would take it for the one that they wait in."""
        super().__init__(1, "tokenwire-stream")
        self._is_shared = is_shared
        self._has_failed = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        return super().submit(self._in_order, fn, *args, **kwargs)

    def _in_order(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        if self._has_failed:
            raise RuntimeError("a pass before it failed")
        try:
            return fn(*args, **kwargs)
        except BaseException:
            self._has_failed = self._is_shared
            raise
