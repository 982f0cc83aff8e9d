"""The tokenizer port: text to ids, ids to bytes. Pure, synchronous, safe to use from threads."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping

from msgspec import Struct

from tokenwire.core.prompt import Shields
from tokenwire.core.token_ids import TokenIds

__all__ = ("NO_SHIELDS", "AddedToken", "Tokenizer", "Vocabulary")

NO_SHIELDS: Shields = {}


class AddedToken(Struct, frozen=True):
    """A token that is matched whole. `special` ones are never shown as text."""

    id: int
    text: str
    special: bool


class Vocabulary(Struct, frozen=True):
    """What is known of the ids."""

    size: int
    """Ids are 0 <= id < size; gaps are allowed."""
    added: tuple[AddedToken, ...] = ()
    eos_ids: tuple[int, ...] = ()
    bos: str | None = None
    eos: str | None = None
    pad: str | None = None
    unk: str | None = None
    fingerprints: Mapping[str, str] = {}
    """fingerprint.py: "vocabulary", "added_tokens", and "merges" where known."""
    strips_leading_space: bool = False
    """SentencePiece: the first piece of an answer loses one leading space."""
    begin_ids: tuple[int, ...] = ()
    """What stands before a text that no chat template made: BOS, where the model wants it."""
    end_ids: tuple[int, ...] = ()
    """What would stand behind it, where the text ends there and no answer follows."""


class Tokenizer(ABC):
    """Laws: decoding what encode gave is the text again (where the model is lossless); encode with
    shields equals encode without them on text that spells no forbidden token; a shielded spelling
    never becomes its token; token_bytes of all ids, joined, is the decoded text's UTF-8.
    """

    vocabulary: Vocabulary
    cuts: tuple[str, ...] = ()
    """Special tokens before which any text may be cut: for a `b` that begins with one of them,
    permitted, encode(a + b) is encode(a) + encode(b), shields alike."""
    breaks: re.Pattern[str] | None = None
    """Matches, without width, other places where any text may be cut so. None: there are none."""

    @abstractmethod
    def encode(self, text: str, shields: Shields = NO_SHIELDS) -> TokenIds:
        """Ids of rendered text; no BOS or EOS is added. Spellings of added tokens become them,
        but for each key of `shields` its value is put in as plain text, whatever it spells."""

    @abstractmethod
    def token_bytes(self, id: int) -> bytes:
        """The id's own bytes: part of a character, perhaps; b"" for an id without text.

        A special token's bytes are its spelling. Raises KeyError for an id that is none.
        """

    def minted(self, id: int) -> tuple[bytes, bool] | None:
        """For vocabularies that grow while they run (scripts): such an id's bytes and whether it is
        special. None: the id is none of these, and what `vocabulary` and `token_bytes` say of it
        holds for ever. Never cached by callers; `token_bytes` knows the id too."""
        return None

    def encode_many(self, texts: list[tuple[str, Shields]]) -> list[TokenIds]:
        """`encode` of each. Called from a thread for long text: release the GIL if you can."""
        return [self.encode(text, shields) for text, shields in texts]
