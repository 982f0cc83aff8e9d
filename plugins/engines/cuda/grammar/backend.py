"""What a grammar library must do: compile a constraint over a vocabulary of bytes, and follow ids.

Knows no library, no job and no thread.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from tokenwire.core.tokens import Constraint
from tokenwire.plugins.engines.cuda.edits import Bits

__all__ = ("WORDS_KEPT", "Backend", "Follow", "Matcher", "Words")

WORDS_KEPT = 8
"""Vocabularies, told apart by the special tokens that grammars spell: whoever writes a grammar
chooses them, and each takes megabytes."""


class Words(Struct, frozen=True):
    """A vocabulary as grammars see it."""

    pieces: tuple[bytes, ...]
    """By id; b"": the id never stands in an answer that is held to a grammar."""
    eos_ids: tuple[int, ...]
    """What ends an answer, where the grammar may end."""

    @property
    def size(self) -> int:
        return len(self.pieces)


class Matcher(ABC):
    """One answer's place in a grammar. Used from one thread."""

    @abstractmethod
    def fill(self, bits: Bits) -> None:
        """Write the ids that may come next into [ceil(V / 32)] int32, eos where it may end."""

    @abstractmethod
    def accept(self, id: int) -> bool:
        """Follow an id; False, and the matcher is of no more use: it was not allowed."""


Follow: TypeAlias = Callable[[], Matcher]


class Backend(ABC):
    name: str
    kinds: tuple[str, ...]
    """Of core's Constraint.kind."""

    @abstractmethod
    def compile(self, constraint: Constraint, words: Words) -> Follow:
        """Makes matchers from the start. Called from threads. Raises GrammarError, with a reason
        that a client may read."""
