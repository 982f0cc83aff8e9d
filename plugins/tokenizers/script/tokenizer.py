"""The tokenizer `script`: minted ids from the script book, bytes for the rest. Knows no engine."""

from __future__ import annotations

from typing import final

from msgspec.structs import replace

from tokenwire.core.byte_text import ByteText
from tokenwire.core.ports.tokenizer import NO_SHIELDS, Tokenizer
from tokenwire.core.prompt import Shields
from tokenwire.core.script import SCRIPT_VOCABULARY_SIZE
from tokenwire.core.scripts import ScriptBook
from tokenwire.core.token_ids import TokenIds

__all__ = ("ScriptTokenizer",)

WORD_START = "▁".encode()


@final
class ScriptTokenizer(Tokenizer):
    """Ids below 512 are the bytes tokenizer's; the others are what the loaded scripts say."""

    def __init__(self, book: ScriptBook, *, sentencepiece: bool = False) -> None:
        self._book = book
        self._text = ByteText()
        self._sentencepiece = sentencepiece
        own = self._text.vocabulary(SCRIPT_VOCABULARY_SIZE)
        self.vocabulary = replace(own, strips_leading_space=sentencepiece)

    def encode(self, text: str, shields: Shields = NO_SHIELDS) -> TokenIds:
        return self._text.encode(text, shields)

    def token_bytes(self, id: int) -> bytes:
        minted = self.minted(id)
        return self._text.token_bytes(id) if minted is None else minted[0]

    def minted(self, id: int) -> tuple[bytes, bool] | None:
        token = self._book.token(id)
        if token is None:
            return None
        if self._sentencepiece and not token.special:
            return token.bytes.replace(WORD_START, b" "), False
        return token.bytes, token.special
