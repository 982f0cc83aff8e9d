"""Reads one tool call from behind its opening marker. One small machine a wire shape."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import ClassVar, Final

from tokenwire.plugins.dialects._shared.emitter import Emitter

__all__ = ("CallReader", "Outcome")

MAX_HELD: Final = 384
"""Characters of a header, marker included: what a tool's name needs, and a state holds twice."""


class Outcome(Enum):
    """Where a feed stopped."""

    MORE = "more"
    """All was read, or what follows the returned index may be the beginning of a marker: the rest
    is given again, with more behind it."""
    DONE = "done"
    """The call is over and closed; the returned index is behind it (its end marker included where
    it stood there)."""
    BROKEN = "broken"
    """What stands at the returned index is in no call of this shape."""


class CallReader(ABC):
    """A call is announced (`emit.start_call`) when its name is certain. Its arguments go out as
    they were written (JSON shapes) or converted by the tool's schema (shapes with bare values),
    while they come. Nothing raises, whatever the text; nothing is repaired.

    Laws: any cutting of the text gives the same emitted text; what was emitted is never retracted.
    """

    kind: ClassVar[str] = ""
    """Names the class in saved states; unique within a `Format`."""
    held: str
    """What was read, marker included, and not given out: text again where no call comes of it.
    Empty once the call is announced. Bounded by MAX_HELD, then BROKEN."""
    is_started: bool
    """Whether the call was announced."""
    is_whole: bool
    """Whether its arguments have been written to their end."""

    @property
    def plain_until(self) -> str:
        """Characters of which a piece must have none to go out as it stands, as arguments; "" when
        the reader has to look at every piece."""
        return ""

    @abstractmethod
    def feed(
        self, text: str, at: int, base: int, emit: Emitter, *, is_final: bool
    ) -> tuple[int, Outcome]:
        """Read `text` from `at`; `base`: how many raw characters of the answer stand before `text`
        (an emitted text's `end` is base + the index behind it). `is_final`: nothing follows, or a
        special token that is no marker does, so what only may begin a marker does not."""

    def stop(self, end: int, emit: Emitter) -> None:  # noqa: B027
        """The answer ends inside the call: give out what is certain of the arguments. The caller
        closes the call, complete if `is_whole`."""

    def _wait(self, text: str, at: int, is_final: bool) -> tuple[int, Outcome]:
        """For more of a marker. At the answer's end there is no more: it was cut off."""
        if not is_final:
            return at, Outcome.MORE
        if not self.is_started:
            self.held += text[at:]
            if len(self.held) > MAX_HELD:
                return len(text), Outcome.BROKEN
        return len(text), Outcome.MORE

    @abstractmethod
    def save(self) -> object:
        """State as msgpack-able builtins."""

    @abstractmethod
    def restore(self, state: object) -> None:
        """Into a fresh reader. Raises msgspec.ValidationError for anything else."""
