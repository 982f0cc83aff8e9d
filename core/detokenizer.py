"""Ids to text, one id at a time, never half a character. Knows no model and no library.

Why our own: a library's stream decoder can be neither saved nor inspected. What is held here is at
most three bytes and one flag, so a stream can stop at any id and go on in another process.
"""

from __future__ import annotations

from codecs import utf_8_decode
from collections.abc import Iterable, Sequence
from typing import Annotated, TypeAlias, final

import msgspec
from msgspec import Meta

from tokenwire.core.ports.tokenizer import Tokenizer
from tokenwire.core.prompt import Piece

__all__ = ("Detokenizer", "PieceTable")

NOTHING: dict[int, Piece] = {}
LONGEST_PREFIX = 3
"""Bytes of a UTF-8 character that may wait for the rest."""

State: TypeAlias = tuple[Annotated[bytes, Meta(max_length=LONGEST_PREFIX)], bool]


@final
class PieceTable:
    """The pieces of one tokenizer, built as ids come by; shared by all of its detokenizers.

    One for each tokenizer (a deployment keeps it): a piece is about 130 bytes, so that a vocabulary
    of 256k ids, all of them seen, is 35 MB.
    """

    __slots__ = ("_tokenizer", "eos_ids", "parts", "specials", "strips_leading_space", "whole")

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        vocabulary = tokenizer.vocabulary
        self.strips_leading_space = vocabulary.strips_leading_space
        self.eos_ids = vocabulary.eos_ids
        self.specials = {token.id: token.text for token in vocabulary.added if token.special}
        self.whole: dict[int, Piece] = {}
        """Ids whose piece is always the same when nothing waits."""
        self.parts: dict[int, bytes] = {}
        """Ids that begin a character and do not end it."""

    def learn(self, id: int) -> Piece | None:
        """The id's own piece; None where it leaves a character unfinished.

        Raises KeyError for an id that the tokenizer does not have.
        """
        minted = self._tokenizer.minted(id)
        if minted is not None:
            return _piece(id, *minted)
        spelling = self.specials.get(id)
        data = self._tokenizer.token_bytes(id) if spelling is None else spelling.encode()
        piece = _piece(id, data, spelling is not None)
        if piece is None:
            self.parts[id] = data
        else:
            self.whole[id] = piece
        return piece

    def token_bytes(self, id: int) -> bytes:
        """The id's bytes. Raises KeyError for an id that the tokenizer does not have."""
        data = self.parts.get(id)
        return self._tokenizer.token_bytes(id) if data is None else data

    def detokenizer(self) -> Detokenizer:
        """A fresh machine, for one choice of one request."""
        return Detokenizer(self)

    def decode(self, ids: Iterable[int]) -> str:
        """All text of `ids`, special tokens spelled."""
        machine = Detokenizer(self)
        return "".join([piece.text for piece in machine.pieces(list(ids))])


def _piece(id: int, data: bytes, special: bool) -> Piece | None:
    text, used = utf_8_decode(data, "replace", special)
    return Piece(text, special, id) if used == len(data) else None


@final
class Detokenizer:
    """One choice's ids to pieces.

    A finished character is sent with the id that finishes it, whatever else that id begins. Bytes
    that cannot become a character give U+FFFD, one for each longest prefix that could have (Unicode
    3.9, which is what the library does in byte-level vocabularies). A character that is unfinished
    where its text ends, at the end or at a special token, is dropped: there is no tail to ask for.
    """

    __slots__ = ("_pending", "_ready", "_strip", "_table")

    def __init__(self, table: PieceTable) -> None:
        self._table = table
        self._pending = b""
        self._strip = table.strips_leading_space
        # Why: one look-up decides the usual case; while anything is held, the look-up must fail.
        self._ready = NOTHING if self._strip else table.whole

    def push(self, id: int) -> Piece:
        """What this id makes certain; its text is "" while a character is unfinished.

        Raises KeyError for an id that the tokenizer does not have.
        """
        piece = self._ready.get(id)
        return self._push(id) if piece is None else piece

    def pieces(self, ids: Sequence[int]) -> Sequence[Piece]:
        """`push` of each; when it raises, what came before is lost."""
        found = list(map(self._ready.get, ids))
        if None in found:
            return [self.push(id) for id in ids]
        return found  # type: ignore[return-value]

    def _push(self, id: int) -> Piece:
        table = self._table
        piece = table.whole.get(id) or table.learn(id)
        if piece is not None and piece.special:
            self._pending, self._strip, self._ready = b"", False, table.whole
            return piece
        if self._pending or piece is None:
            data = self._pending + table.token_bytes(id)
            text, used = utf_8_decode(data, "replace", False)
            self._pending = data[used:]
            piece = Piece(text, False, id)
        if self._strip and piece.text:
            self._strip = False
            piece = Piece(piece.text.removeprefix(" "), False, id)
        self._ready = NOTHING if self._pending or self._strip else table.whole
        return piece

    def save(self) -> tuple[bytes, bool]:
        """State as builtins: the bytes that wait, and whether a leading space is still to go."""
        return self._pending, self._strip

    def restore(self, state: object) -> None:
        """Take what `save` gave. Raises msgspec.ValidationError for anything else."""
        self._pending, self._strip = msgspec.convert(state, State)
        self._ready = NOTHING if self._pending or self._strip else self._table.whole
