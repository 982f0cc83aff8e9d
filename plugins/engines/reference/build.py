"""Builds the reference engine: loads the model, and makes its card."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from tokenwire.core.errors import ConfigError
from tokenwire.core.factory import Services
from tokenwire.core.ports.engine import Engine
from tokenwire.core.threaded_engine import ThreadedEngine
from tokenwire.core.tokens import CAPABILITIES, EngineCard
from tokenwire.plugins.engines.reference.settings import ReferenceSettings

if TYPE_CHECKING:
    from tokenwire.plugins.engines.reference.model import Model

__all__ = ("assemble", "build", "make_card")

LACKS = ("handoff", "adapter")
DEFAULT_CONTEXT = 2048
"""Where neither the configuration nor the model says."""


def build(settings: ReferenceSettings, services: Services) -> Engine:
    """Raises ConfigError: torch or transformers is missing, or the path is wrong. Takes seconds."""
    missing = [name for name in ("torch", "transformers") if not importlib.util.find_spec(name)]
    if missing:
        raise ConfigError(
            f"engine reference needs {' and '.join(missing)}: pip install 'tokenwire[reference]'"
        )
    from tokenwire.plugins.engines.reference.model import load

    model = load(
        _folder(settings, services),
        gguf=settings.gguf,
        device=settings.device,
        dtype=settings.dtype,
    )
    return assemble(model, make_card(settings, services, model), settings)


def assemble(model: Model, card: EngineCard, settings: ReferenceSettings) -> Engine:
    """The engine of a model that is loaded already."""
    from tokenwire.plugins.engines.reference.worker import ReferenceWorker

    worker = ReferenceWorker(model, card, settings)
    return ThreadedEngine(worker, card, settings.max_running + settings.max_waiting, "reference")


def make_card(settings: ReferenceSettings, services: Services, model: Model) -> EngineCard:
    vocabulary = None if services.tokenizer is None else services.tokenizer.vocabulary
    known = model.vocab_size if vocabulary is None else vocabulary.size
    eos_ids = () if vocabulary is None else vocabulary.eos_ids
    context = settings.context_length or services.context_length or model.context_length
    return EngineCard(
        model=services.model,
        # Why the smaller: ids beyond the tokenizer mean nothing, ids beyond the model crash it.
        vocab_size=min(known, model.vocab_size),
        context_length=context or DEFAULT_CONTEXT,
        fingerprints={} if vocabulary is None else vocabulary.fingerprints,
        eos_ids=tuple(dict.fromkeys((*eos_ids, *model.eos_ids))),
        capabilities=tuple(each for each in CAPABILITIES if each not in LACKS),
        credit_cap=settings.credit_cap,
    )


def _folder(settings: ReferenceSettings, services: Services) -> Path:
    if settings.path is not None:
        return Path(settings.path)
    if services.checkpoint is None:
        raise ConfigError(
            f"engine reference: model {services.model!r} has no checkpoint: "
            "set `path` to its folder"
        )
    return services.checkpoint.folder
