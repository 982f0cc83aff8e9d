"""Builds the mock engine for a model: its card comes from the model's tokenizer and limits."""

from __future__ import annotations

from tokenwire.core import blocks
from tokenwire.core.factory import Services
from tokenwire.core.ports.tokenizer import Vocabulary
from tokenwire.core.tokens import CAPABILITIES, Adapter, EngineCard, MediaProcessor
from tokenwire.plugins.engines.mock.engine import MockEngine
from tokenwire.plugins.engines.mock.lines import Repertoire
from tokenwire.plugins.engines.mock.settings import MockSettings
from tokenwire.plugins.engines.mock.spelling import KINDS

__all__ = ("build", "make_card")

DEFAULT_CONTEXT = 8192
LACKS = ("handoff",)
CAN = (*CAPABILITIES, *(f"grammar:{kind}" for kind in KINDS))
BYTES = Vocabulary(size=512, eos_ids=(256,))
"""Without a tokenizer: ids are bytes, as far as anybody can tell."""


def build(settings: MockSettings, services: Services) -> MockEngine:
    tokenizer = services.tokenizer
    vocabulary = BYTES if tokenizer is None else tokenizer.vocabulary
    card = make_card(settings, vocabulary, services.model, services.context_length)
    repertoire = Repertoire(settings, tokenizer, card.eos_ids)
    return MockEngine(settings, card, repertoire, services.scripts)


def make_card(
    settings: MockSettings, vocabulary: Vocabulary, model: str, context_length: int | None
) -> EngineCard:
    context = settings.context_length or context_length or DEFAULT_CONTEXT
    if settings.kv_blocks:
        context = min(context, settings.kv_blocks * settings.block_size)
    adapters = tuple(Adapter(*name.split("@", 1)) for name in settings.adapters)
    lacks = {*LACKS, *settings.without, *(() if adapters else ("adapter",))}
    root = blocks.root(f"model:{model}|engine:mock|block:{settings.block_size}")
    return EngineCard(
        model=model,
        vocab_size=vocabulary.size,
        context_length=context,
        fingerprints=vocabulary.fingerprints,
        eos_ids=vocabulary.eos_ids,
        block_size=settings.block_size,
        hash_root=root.hex() if settings.kv_blocks else "",
        adapters=adapters,
        media=MediaProcessor(*settings.media.split("@", 1)) if settings.media else None,
        tasks=settings.tasks,
        embedding_size=settings.embedding_size if "embed" in settings.tasks else None,
        capabilities=tuple(each for each in CAN if each not in lacks),
        credit_cap=settings.credit_cap,
    )
