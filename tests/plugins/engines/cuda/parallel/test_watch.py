"""Which silence of a rank is its end, on a clock that the test turns."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tokenwire.plugins.engines.cuda.parallel.front.watch import Watch


class Clock:
    """A loop that only knows the time, and what is to be called when."""

    def __init__(self) -> None:
        self.now = 0.0
        self._due: list[tuple[float, Any]] = []

    def time(self) -> float:
        return self.now

    def call_later(self, seconds: float, call: Any) -> Any:
        item = (self.now + seconds, call)
        self._due.append(item)
        return SimpleNamespace(cancel=lambda: item in self._due and self._due.remove(item))

    def go(self, seconds: float, *, late: float = 0.0) -> None:
        """So long, one call after another; `late`: this process runs only then."""
        until = self.now + seconds
        self.now += late
        while self._due and min(self._due)[0] <= until:
            due, call = self._due.pop(0)
            self.now = max(self.now, due)
            call()
        self.now = max(self.now, until)


def watched() -> tuple[Clock, dict[int, Any], list[int]]:
    clock, mute = Clock(), list[int]()
    wires = {rank: SimpleNamespace(rank=rank, heard_at=0.0) for rank in range(3)}
    watch: Any = Watch(clock, 10, mute.append)  # type: ignore[arg-type]
    watch.begin(wires)
    return clock, wires, mute


def test_the_rank_that_says_nothing_is_named_once_the_time_is_over() -> None:
    clock, wires, mute = watched()
    for _ in range(9):
        clock.go(1)
        wires[0].heard_at = wires[2].heard_at = clock.now
    assert mute == []
    clock.go(20)
    assert mute == [1]


def test_ranks_that_speak_are_left_alone() -> None:
    clock, wires, mute = watched()
    for _ in range(50):
        clock.go(1)
        for wire in wires.values():
            wire.heard_at = clock.now
    assert mute == []


def test_a_front_that_was_stopped_itself_listens_anew() -> None:
    clock, wires, mute = watched()
    clock.go(100, late=100)
    assert mute == []
    assert {wire.heard_at for wire in wires.values()} == {100.0}
    clock.go(15)
    assert mute == [0]


def test_who_has_left_is_not_missed() -> None:
    clock, wires, mute = watched()
    wires.clear()
    clock.go(100)
    assert mute == []
