"""What several parts can do together, from the card of each. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from tokenwire.core.errors import ConfigError
from tokenwire.core.tokens import EngineCard

__all__ = ("joint", "lack")

ALIKE = ("model", "vocab_size", "block_size", "hash_root", "adapters", "tasks", "embedding_size")


def joint(cards: Sequence[EngineCard], layout: str) -> EngineCard:
    """The card of all: the shortest context, and what every one of them declares. Raises
    ConfigError where they differ in what must be alike."""
    first = cards[0]
    for other in cards[1:]:
        for name in ALIKE:
            if getattr(other, name) != getattr(first, name):
                raise ConfigError(
                    f"engine cuda: {name} is {getattr(first, name)!r} at one rank and "
                    f"{getattr(other, name)!r} at another: give all machines the same checkpoint"
                )
    return replace(
        first,
        parallel=layout,
        context_length=min(card.context_length for card in cards),
        capabilities=tuple(
            each for each in first.capabilities if all(card.can(each) for card in cards)
        ),
    )


def lack(promised: EngineCard, cards: Sequence[EngineCard]) -> str:
    """Why parts that started again cannot keep what was promised; "": they can."""
    for card in cards:
        for name in ALIKE:
            if getattr(card, name) != getattr(promised, name):
                return f"{name} is {getattr(card, name)!r} now, and was {getattr(promised, name)!r}"
        if card.context_length < promised.context_length:
            return (
                f"its memory holds {card.context_length} tokens of context now, and "
                f"{promised.context_length} were promised"
            )
        missing = [each for each in promised.capabilities if not card.can(each)]
        if missing:
            return f"it can do {', '.join(missing)} no more"
    return ""
