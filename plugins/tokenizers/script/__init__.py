"""Tokenizer `script`: the ids that scripts mint, and bytes for all other text. For tests."""

from __future__ import annotations

from collections.abc import Iterable

from tokenwire.core.errors import ConfigError
from tokenwire.core.factory import Factory, Services
from tokenwire.core.hookspecs import impl
from tokenwire.core.ports.tokenizer import Tokenizer
from tokenwire.plugins.tokenizers.script.settings import ScriptSettings

__all__ = ("register_tokenizers",)


def _build(settings: ScriptSettings, services: Services) -> Tokenizer:
    from tokenwire.plugins.tokenizers.script.tokenizer import ScriptTokenizer

    if services.scripts is None:
        raise ConfigError(
            "tokenizer script: wanted the mock's scripts, got none: set the model's engine to "
            "mock, or its tokenizer to another than script"
        )
    return ScriptTokenizer(services.scripts, sentencepiece=settings.sentencepiece)


@impl
def register_tokenizers() -> Iterable[Factory[Tokenizer]]:
    yield Factory("script", ScriptSettings, _build, "one id a piece of a script, for tests")
