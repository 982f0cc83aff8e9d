"""What becomes of each field of each protocol on one model: codecs' tables, an engine's card and
the model's dialect put together. Pure; knows no wire."""

from __future__ import annotations

from collections.abc import Iterable

from tokenwire.core.dialect_powers import DIALECT, DialectPowers
from tokenwire.core.field_rule import FieldRule
from tokenwire.core.ports.codec import Codec
from tokenwire.core.queries import FieldUse, ModelCapabilities
from tokenwire.core.served import ServedModel
from tokenwire.core.tokens import EngineCard

__all__ = ("capabilities_of", "use_of")


def use_of(rule: FieldRule, card: EngineCard | None, powers: DialectPowers) -> FieldUse:
    """The rule as it holds for a model; of an engine that loads still, anything is expected."""

    def has(need: str) -> bool:
        if need.startswith(DIALECT):
            return powers.can(need)
        return card is None or card.can(need)

    lacks = tuple(need for need in rule.needs if not has(need))
    return FieldUse(rule.name, rule.otherwise if lacks else rule.how, rule.what, lacks)


def capabilities_of(
    model: ServedModel, aliases: Iterable[str], codecs: Iterable[Codec]
) -> ModelCapabilities:
    """Protocols are left out whose codec has no table, or that ask what the engine does not do."""
    dispatcher = model.dispatcher
    card = None if dispatcher is None else dispatcher.card
    dialect, why = model.dialect
    powers = model.renderer.powers
    return ModelCapabilities(
        name=model.name,
        aliases=tuple(aliases),
        context_length=model.info().context_length,
        tasks=() if card is None else card.tasks,
        embedding_size=None if card is None else card.embedding_size,
        dialect=dialect,
        why=why,
        fingerprint=model.renderer.fingerprint,
        engine=() if card is None else card.capabilities,
        is_ready=dispatcher is not None and dispatcher.status().ready,
        protocols={
            codec.name: tuple(use_of(rule, card, powers) for rule in codec.fields)
            for codec in codecs
            if codec.fields and (card is None or codec.task is None or codec.task in card.tasks)
        },
    )
