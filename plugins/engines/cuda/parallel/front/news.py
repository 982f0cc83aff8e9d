"""What a group tells of itself, and to whom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from tokenwire.core.tokens import EngineCard, KvEvent, TokenDelta
from tokenwire.plugins.engines.cuda.parallel.front.part import Part

if TYPE_CHECKING:
    from tokenwire.plugins.engines.cuda.parallel.front.instance import Instance

__all__ = ("News", "State")

State: TypeAlias = Literal["starting", "ready", "down", "ended"]


class News(Protocol):
    def deltas(self, batch: tuple[TokenDelta, ...]) -> None: ...

    def events(self, part: Part, events: Sequence[KvEvent]) -> None: ...

    def left(self, part: Part) -> None:
        """It is gone."""

    def moved(self, instance: Instance) -> None:
        """Its state or its progress is another."""

    def misfit(self, cards: Sequence[EngineCard]) -> str:
        """Why these cannot serve what the front has promised; "": they can."""
        ...
