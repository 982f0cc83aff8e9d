"""The card of a generating engine: what it says of itself to whoever hands it jobs."""

from __future__ import annotations

from tokenwire.core import blocks
from tokenwire.core.factory import Services
from tokenwire.core.tokens import CAPABILITIES, Adapter, EngineCard, KvLayout
from tokenwire.plugins.engines.cuda.load import Loaded
from tokenwire.plugins.engines.cuda.settings import CudaSettings
from tokenwire.plugins.engines.cuda.sizes import Shape

__all__ = ("make_card",)

LAYOUT = "layout:1"
"""Of KV blocks in memory: part of what their hashes commit to."""


def make_card(
    settings: CudaSettings,
    services: Services,
    loaded: Loaded,
    found: Shape,
    *,
    revision: str = "",
) -> EngineCard:
    """Without what a grammar's backend adds to it."""
    model, config = loaded.model, loaded.config
    vocabulary = None if services.tokenizer is None else services.tokenizer.vocabulary
    known = config.vocab_size if vocabulary is None else vocabulary.size
    eos_ids = () if vocabulary is None else vocabulary.eos_ids
    dtype = str(model.dtype).removeprefix("torch.")
    kv_dtype = "fp8" if settings.kv_dtype == "fp8" else dtype
    heads, width, _ = config.kv_shape()
    lacks = {"handoff"} if settings.adapters else {"handoff", "adapter"}
    commitment = (
        f"model:{services.model}|rev:{revision}|dtype:{dtype}|kv:{kv_dtype}|{LAYOUT}|"
        f"block:{settings.block_size}"
    )
    return EngineCard(
        model=services.model,
        revision=revision,
        # Why the smaller: ids beyond the tokenizer mean nothing, ids beyond the model crash it.
        vocab_size=min(known, config.vocab_size),
        context_length=found.max_model_len,
        fingerprints={} if vocabulary is None else vocabulary.fingerprints,
        eos_ids=tuple(dict.fromkeys((*eos_ids, *config.eos_ids))),
        block_size=settings.block_size,
        hash_root=blocks.root(commitment).hex(),
        kv_layout=KvLayout(
            kv_dtype,
            config.layers,
            heads,
            width,
            settings.block_size,
            "gqa" if config.mla is None else "mla",
        ),
        adapters=tuple(Adapter(name) for name in settings.adapters),
        capabilities=tuple(each for each in CAPABILITIES if each not in lacks),
        credit_cap=settings.credit_cap,
    )
