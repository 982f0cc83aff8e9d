"""Into how many parts decode cuts a sequence's keys, and what sums of parts take. Arithmetic alone.

A part's bounds follow from the sequence's length, the heads and constants: what occupancy or the
batch chose would change a row's bits with its company.
"""

from __future__ import annotations

__all__ = ("SPLIT", "most_splits", "parts_room", "splits_of", "together")

SPLIT = 1024
"""Keys of a part, or a multiple of it. Many, for a part's sums at 128 heads are half as large as
1,024 entries."""
TOKEN_BYTES = 8 << 20
"""That one token's sums may take. At 128 heads of 512 numbers they are 32 parts: beyond 32,768 keys
these are longer, so that a token alone keeps 64 programs busy."""
ROOM = 512 << 20
"""Bytes of all tokens' sums: those that do not fit wait for the next launch."""
FLOAT = 4


def most_splits(heads: int, latent: int) -> int:
    """Parts of any sequence, whatever its length."""
    return max(1, TOKEN_BYTES // (heads * latent * FLOAT))


def splits_of(longest: int, heads: int, latent: int) -> int:
    """Parts for which there is to be room where no sequence has more than `longest` keys."""
    return max(1, min(-(-longest // SPLIT), most_splits(heads, latent)))


def together(tokens: int, longest: int, heads: int, latent: int) -> int:
    """Tokens of a launch; a multiple of four where there are more launches, so that what is left of
    a batch begins where wide loads may."""
    each = splits_of(longest, heads, latent) * heads * latent * FLOAT
    fitting = max(1, ROOM // each)
    return tokens if tokens <= fitting else max(fitting // 4 * 4, min(fitting, 4))


def parts_room(tokens: int, longest: int, heads: int, latent: int) -> int:
    """Bytes of a step's sums and their scales."""
    count = min(tokens, together(tokens, longest, heads, latent))
    return count * splits_of(longest, heads, latent) * heads * (latent + 1) * FLOAT
