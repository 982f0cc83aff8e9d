"""What a step is asked, and what it brings: values between the loop and the runner. Knows no job
and no network."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeAlias, final

from tokenwire.plugins.engines.cuda.blame import release_frames
from tokenwire.plugins.engines.cuda.edits import RowEdits
from tokenwire.plugins.engines.cuda.policy.plan import Row
from tokenwire.plugins.engines.cuda.sampler import Drawn, Scores, Wish

__all__ = ("NAMES", "NOTHING", "Asked", "Drew", "PromptWish", "Results", "Step")

Drew: TypeAlias = "tuple[Drawn, tuple[Scores, ...]]"
"""What is drawn, and the scores of prompts."""
NAMES = ("chosen", "rank", "top_values", "top_ids", "extra")
"""Of a Scores' tensors."""


@final
@dataclass(frozen=True, slots=True)
class PromptWish:
    """Log probabilities of a prompt's ids: of those that follow the row's tokens."""

    row: int
    """Of the plan."""
    targets: tuple[int, ...]
    """The ids that follow the row's first tokens, one each."""
    top: int
    extra: tuple[int, ...]


@final
@dataclass(frozen=True, slots=True)
class Asked:
    """What a step's rows want beyond their ids."""

    edits: tuple[tuple[int, RowEdits], ...] = ()
    """(row of the logits, what it needs)."""
    wishes: tuple[Wish, ...] = ()
    prompts: tuple[PromptWish, ...] = ()


NOTHING = Asked()


@final
@dataclass(frozen=True, slots=True)
class Results:
    """On the host. Of R rows of logits, and of every wish."""

    ids: list[int]
    is_sound: list[bool]
    scores: tuple[Mapping[str, list[Any]], ...] = ()
    """One a wish: chosen, rank, top_values, top_ids, extra, each with a row an entry."""
    prompts: tuple[Mapping[str, list[Any]], ...] = ()


@final
class Step:
    """A launched step."""

    __slots__ = ("event", "future", "host", "launched", "number", "rows", "times")

    def __init__(self, rows: Sequence[Row], number: int = 0) -> None:
        self.rows = tuple(rows)
        self.number = number
        self.launched = time.monotonic()
        self.times: tuple[int, int, int, int] = (0, 0, 0, 0)
        """By perf_counter_ns: when it was launched, when its inputs were prepared, when the device
        began and ended; an end of 0: when its results were there."""
        self.future: Future[Drew] | None = None
        self.host: Drew | None = None
        self.event: Any = None

    @staticmethod
    def failed(rows: Sequence[Row], error: Exception) -> Step:
        """One that could not be launched: `results` raises what happened."""
        step = Step(rows)
        step.future = Future()
        step.future.set_exception(error)
        return step

    def results(self) -> Results:
        """Waits for the device. Raises what the step raised."""
        if self.future is not None:
            self.host = self.future.result()
        if self.event is not None:
            self.event.synchronize()
        assert self.host is not None
        drawn, prompts = self.host
        return Results(
            ids=drawn.ids.tolist(),
            is_sound=drawn.is_sound.tolist(),
            scores=tuple(_lists(each) for each in drawn.scores),
            prompts=tuple(_lists(each) for each in prompts),
        )

    def wait(self) -> None:
        """Until the device is done with it, whatever came of it: that is dropped."""
        try:
            if self.future is not None:
                self.future.result()
            if self.event is not None:
                self.event.synchronize()
        except Exception as error:
            release_frames(error)


def _lists(scores: Scores) -> Mapping[str, list[Any]]:
    return {name: getattr(scores, name).tolist() for name in NAMES}
