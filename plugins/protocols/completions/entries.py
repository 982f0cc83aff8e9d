"""The protocol's logprobs: parallel arrays, with where each token stands in the text. No stream.

A token's text is its own bytes; those that are no whole character are written `bytes:\\xe6\\xbd`,
as OpenAI's servers do. A token that is not part of the text (a BOS that the tokenizer puts there)
stands where the text has come to. Offsets count characters and never fall.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, final

from tokenwire.core.events import TokenLogprob

__all__ = ("Arrays", "Cursor", "entries", "spelled", "unspelled")

FLOOR: Final = -9999.0
"""What stands for a log probability that JSON cannot hold, or that is below it."""
BYTES: Final = "bytes:"
CONTINUATION: Final = range(0x80, 0xC0)

Arrays = dict[str, list[object] | None]


def spelled(data: bytes) -> str:
    """A token's bytes as text."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return BYTES + "".join(f"\\x{byte:02x}" for byte in data)


def unspelled(text: str) -> bytes:
    """What `spelled` wrote, as bytes again."""
    digits = text.removeprefix(BYTES).replace("\\x", "")
    if not text.startswith(BYTES) or digits.strip("0123456789abcdef") or len(digits) % 2:
        return text.encode()
    return bytes.fromhex(digits)


def _value(logprob: float) -> float | None:
    """NaN: there is none, as of a prompt's first token."""
    return None if math.isnan(logprob) else max(logprob, FLOOR)


def entries(tokens: Sequence[TokenLogprob], offsets: Sequence[int], *, top: bool) -> Arrays:
    """`top`: whether alternatives were asked for; the token itself is then among them."""
    return {
        "tokens": [spelled(token.bytes) for token in tokens],
        "token_logprobs": [_value(token.logprob) for token in tokens],
        "top_logprobs": [_top(token) for token in tokens] if top else None,
        "text_offset": list(offsets),
    }


def _top(token: TokenLogprob) -> dict[str, float | None] | None:
    if math.isnan(token.logprob):
        return None
    found: dict[str, float | None] = {}
    for other in (*token.top, token):
        found.setdefault(spelled(other.bytes), _value(other.logprob))
    return found


@final
class Cursor:
    """Where in the text the next token stands."""

    __slots__ = ("carry", "offset")

    def __init__(self, offset: int = 0, carry: bytes = b"") -> None:
        self.offset = offset
        """Characters so far."""
        self.carry = carry
        """The end of an earlier token, whose text is still to come."""

    def place(self, tokens: Sequence[TokenLogprob], text: str) -> list[int]:
        """The offsets of `tokens`, which bring `text`."""
        data = text.encode()
        at = self._carried(data)
        offsets: list[int] = []
        count = start = 0  # Characters that begin before byte `start`.
        for token in tokens:
            count += sum(byte not in CONTINUATION for byte in data[start:at])
            start = at
            is_inside = at < len(data) and data[at] in CONTINUATION
            offsets.append(self.offset + count - is_inside)
            at = self._past(token.bytes, data, at)
        self.offset += len(text)
        return offsets

    def _carried(self, data: bytes) -> int:
        carry, self.carry = self.carry, b""
        if data.startswith(carry):
            return len(carry)
        if carry.startswith(data):
            self.carry = carry[len(data) :]
            return len(data)
        return 0

    def _past(self, token: bytes, data: bytes, at: int) -> int:
        """Behind the token, where it is part of the text."""
        if data.startswith(token, at):
            return at + len(token)
        rest = data[at:]
        if rest and token.startswith(rest):
            self.carry = token[len(rest) :]
            return len(data)
        # Why: the first piece of a SentencePiece answer loses its leading space.
        bare = token.removeprefix(b" ")
        return at + len(bare) if data.startswith(bare, at) else at
