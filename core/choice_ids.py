"""One choice as a generation sees it: who reads its ids, and which have come. Pure."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Protocol, final

from tokenwire.core.events import Event
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import Finish, IdLogprobs

__all__ = ("ChoiceDecoder", "History")


@final
class History:
    """The ids received of one choice, wanted or not; those before a restore are only counted."""

    __slots__ = ("_before", "_ids", "has_begun", "length")

    def __init__(self, before: int = 0, *, has_begun: bool = False) -> None:
        self._before = before
        self._ids = array("I")
        self.length = before
        self.has_begun = has_begun
        """Whether the prompt was echoed, where it is to be."""

    def extend(self, ids: Sequence[int]) -> None:
        self._ids.extend(ids)
        self.length += len(ids)

    @property
    def is_partial(self) -> bool:
        return self._before > 0

    def ids(self, count: int) -> TokenIds:
        """The first `count` of those held."""
        return TokenIds(self._ids[:count])

    def agrees(self, at: int, ids: Sequence[int]) -> bool:
        """Whether `ids`, which begin at `at`, repeat what is held, as far as it is known."""
        if not 0 <= at <= self.length <= at + len(ids):
            return False
        start = max(at, self._before)
        known = self._ids[start - self._before :]
        return list(known) == list(ids[start - at : start - at + len(known)])


class ChoiceDecoder(Protocol):
    """One choice's ids to events; `decoder.Decoder` says more."""

    @property
    def generated(self) -> int:
        """Tokens that count."""
        ...

    @property
    def reasoning_tokens(self) -> int: ...

    @property
    def stopped(self) -> str | None:
        """Set when no more ids are wanted."""
        ...

    def push(self, ids: Sequence[int], logprobs: Sequence[IdLogprobs] = ()) -> list[Event]: ...

    def finish(self, finish: Finish) -> list[Event]: ...

    def save(self) -> object: ...

    def restore(self, state: object) -> None: ...
