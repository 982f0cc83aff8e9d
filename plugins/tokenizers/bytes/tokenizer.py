"""The tokenizer `bytes`. Reads no file and knows no model."""

from __future__ import annotations

from typing import final

from tokenwire.core.byte_text import ByteText
from tokenwire.core.ports.tokenizer import NO_SHIELDS, Tokenizer
from tokenwire.core.prompt import Shields
from tokenwire.core.token_ids import TokenIds

__all__ = ("BytesTokenizer",)


@final
class BytesTokenizer(Tokenizer):
    """Ids 0 to 255 are bytes; 256, 257, 258 are <bos>, <eos>, <pad>."""

    def __init__(self) -> None:
        self._text = ByteText()
        self.vocabulary = self._text.vocabulary()

    def encode(self, text: str, shields: Shields = NO_SHIELDS) -> TokenIds:
        return self._text.encode(text, shields)

    def token_bytes(self, id: int) -> bytes:
        return self._text.token_bytes(id)
