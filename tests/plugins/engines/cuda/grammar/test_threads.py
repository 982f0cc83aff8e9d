"""Threads that compile: what they give, and that they hold up no end."""

from __future__ import annotations

import subprocess
import sys
from threading import Event

import pytest

from tokenwire.plugins.engines.cuda.grammar.threads import Threads

pytestmark = pytest.mark.torch

PATIENCE_S = 60.0


class Panic(BaseException):
    """As compiled libraries raise them."""


def panic() -> int:
    raise Panic("at the disco")


def test_results_and_errors_come_out() -> None:
    threads = Threads[int](2, "t")
    good, bad = threads.submit(lambda: 3), threads.submit(lambda: 1 // 0)
    assert good.result(PATIENCE_S) == 3
    with pytest.raises(ZeroDivisionError):
        bad.result(PATIENCE_S)
    threads.close()


def test_a_panic_is_an_error_and_the_thread_goes_on() -> None:
    threads = Threads[int](1, "t")
    with pytest.raises(RuntimeError, match="Panic: at the disco"):
        threads.submit(panic).result(PATIENCE_S)
    assert threads.submit(lambda: 3).result(PATIENCE_S) == 3
    threads.close()


def test_what_has_not_begun_when_they_are_closed_is_cancelled() -> None:
    threads, began, go = Threads[int](1, "t"), Event(), Event()

    def wait() -> int:
        began.set()
        go.wait(PATIENCE_S)
        return 1

    first, second = threads.submit(wait), threads.submit(lambda: 2)
    assert began.wait(PATIENCE_S)
    threads.close()
    threads.close()
    assert threads.submit(lambda: 3).cancelled()
    done = Event()
    second.add_done_callback(lambda _: done.set())
    go.set()
    assert done.wait(PATIENCE_S)
    assert first.result(PATIENCE_S) == 1
    assert second.cancelled()


def test_work_that_never_ends_does_not_keep_the_process() -> None:
    code = (
        "from threading import Event\n"
        "from tokenwire.plugins.engines.cuda.grammar.threads import Threads\n"
        "threads, began = Threads(1, 't'), Event()\n"
        "threads.submit(lambda: (began.set(), Event().wait()))\n"
        "began.wait()\n"
        "threads.close()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=PATIENCE_S)
