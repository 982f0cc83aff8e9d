"""Tokenizer `bytes`: one id a byte, and three special tokens. For tests and for the mock."""

from __future__ import annotations

from collections.abc import Iterable

from tokenwire.core.factory import Factory, NoSettings, Services
from tokenwire.core.hookspecs import impl
from tokenwire.core.ports.tokenizer import Tokenizer

__all__ = ("register_tokenizers",)


def _build(settings: NoSettings, services: Services) -> Tokenizer:
    from tokenwire.plugins.tokenizers.bytes.tokenizer import BytesTokenizer

    return BytesTokenizer()


@impl
def register_tokenizers() -> Iterable[Factory[Tokenizer]]:
    yield Factory("bytes", NoSettings, _build, "one id a byte of UTF-8, for tests")
