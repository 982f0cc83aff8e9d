"""Text as byte ids, with a few special tokens: the vocabulary of tests and mocks. No model."""

from __future__ import annotations

import re
from typing import final

from tokenwire.core import fingerprint
from tokenwire.core.ports.tokenizer import AddedToken, Vocabulary
from tokenwire.core.prompt import Shields
from tokenwire.core.token_ids import TokenIds

__all__ = ("BOS", "EOS", "PAD", "ByteText")

BOS = "<bos>"
EOS = "<eos>"
PAD = "<pad>"
BYTES = 256


@final
class ByteText:
    """Ids 0 to 255 are bytes of UTF-8, the next ones `specials` in their order."""

    def __init__(self, specials: tuple[str, ...] = (BOS, EOS, PAD)) -> None:
        self._ids = {text: BYTES + place for place, text in enumerate(specials)}
        self._spellings = {id: text.encode() for text, id in self._ids.items()}
        longest_first = sorted(specials, key=len, reverse=True)
        self._pattern = re.compile(f"({'|'.join(map(re.escape, longest_first))})")

    def vocabulary(self, size: int | None = None) -> Vocabulary:
        """`size`: for a vocabulary that knows more ids than these."""
        added = tuple(AddedToken(id, text, True) for text, id in self._ids.items())
        tokens = {id: self.token_bytes(id) for id in range(BYTES + len(added))}
        return Vocabulary(
            size=BYTES + len(added) if size is None else size,
            added=added,
            eos_ids=(self._ids[EOS],),
            bos=BOS,
            eos=EOS,
            pad=PAD,
            fingerprints={
                "vocabulary": fingerprint.vocabulary(tokens),
                "added_tokens": fingerprint.added_tokens(
                    (token.id, token.text, token.special) for token in added
                ),
            },
        )

    def encode(self, text: str, shields: Shields) -> TokenIds:
        """As `Tokenizer.encode`. A lone surrogate, which UTF-8 cannot hold, becomes a "?"."""
        values = {ord(point): spelling for point, spelling in shields.items()}
        ids = TokenIds()
        for place, run in enumerate(self._pattern.split(text)):
            if place % 2:
                ids.append(self._ids[run])
            elif run:
                ids.extend(run.translate(values).encode("utf-8", "replace"))
        return ids

    def token_bytes(self, id: int) -> bytes:
        """Raises KeyError for an id that is none of these."""
        if 0 <= id < BYTES:
            return bytes((id,))
        return self._spellings[id]
