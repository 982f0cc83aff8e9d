"""A call for which media must be fetched by URL first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from tokenwire.core.call import Call, Need
from tokenwire.core.dialogue import Image, Part, Turn

__all__ = ("FetchingCall", "needs_of")


class FetchingCall(Call, frozen=True):
    """Made only where there is such a need; else a plain Call is enough."""

    def resolve(self, found: Mapping[Need, object]) -> Call:
        """`found` has bytes. Raises LookupError for a need that is not there."""
        resolved = super().resolve(found)
        turns = tuple(
            replace(turn, parts=tuple(_filled(part, found) for part in turn.parts))
            for turn in self.dialogue.turns
        )
        return replace(resolved, dialogue=replace(self.dialogue, turns=turns))


def needs_of(turns: Iterable[Turn]) -> tuple[Need, ...]:
    """Each once, in order."""
    urls = [
        part.url
        for turn in turns
        for part in turn.parts
        if isinstance(part, Image) and part.url is not None
    ]
    return tuple(Need("url", url) for url in dict.fromkeys(urls))


def _filled(part: Part, found: Mapping[Need, object]) -> Part:
    if not isinstance(part, Image) or part.url is None:
        return part
    data = found.get(Need("url", part.url))
    return replace(part, url=None, data=data) if isinstance(data, bytes) else part
