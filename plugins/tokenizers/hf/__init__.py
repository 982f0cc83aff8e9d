"""Tokenizer `hf`: a tokenizer.json, read by the tokenizers library. Listing it imports neither."""

from __future__ import annotations

from collections.abc import Iterable

from tokenwire.core.factory import Factory, Services
from tokenwire.core.hookspecs import impl
from tokenwire.core.ports.tokenizer import Tokenizer
from tokenwire.plugins.tokenizers.hf.settings import HfSettings


@impl
def register_tokenizers() -> Iterable[Factory[Tokenizer]]:
    return (Factory("hf", HfSettings, _build, "a checkpoint's tokenizer.json"),)


def _build(settings: HfSettings, services: Services) -> Tokenizer:
    from tokenwire.plugins.tokenizers.hf.load import load

    return load(settings, services.checkpoint)
