"""What a grammar backend offers: one machine a choice that says which ids may come next.

Knows no backend. A backend compiles in its own time, off the loop and off the step.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta

from tokenwire.core.tokens import TokenJob
from tokenwire.plugins.engines.cuda.edits import Bits

__all__ = ("Constrained", "GrammarError", "Grammars", "Make", "choices")


class GrammarError(Exception):
    """The constraint cannot be kept: its text says why, in words that a client may read."""


def choices(text: str) -> list[str]:
    """Of a constraint of kind "choice". Raises GrammarError."""
    try:
        return msgspec.json.decode(text, type=Annotated[list[str], Meta(min_length=1)])
    except msgspec.DecodeError as error:
        raise GrammarError(f"wanted a JSON array of strings, one at least: {error}") from error


class Constrained(ABC):
    """One choice's place in its grammar. Used from one thread."""

    is_over: bool = False
    """The grammar is complete, and nothing may follow."""

    @abstractmethod
    def bits(self) -> Bits | None:
        """[ceil(V / 32)] int32: the ids that may come next, eos among them where the grammar may
        end. None: any (it has not begun yet)."""

    @abstractmethod
    def push(self, id: int) -> None:
        """The id that came. One that `bits` did not allow (a forced one) ends the constraint."""


Make: TypeAlias = Callable[[], Constrained]


class Grammars(ABC):
    """One model's grammars, compiled once and kept."""

    kinds: tuple[str, ...] = ()
    """Of core's Constraint.kind: those that it can compile."""

    @abstractmethod
    def begin(self, job: TokenJob) -> Future[Make]:
        """Compile the job's constraint in another thread. The future raises GrammarError."""

    @abstractmethod
    def close(self) -> None:
        """Wait for nothing; compile nothing more."""
