"""A SentencePiece vocabulary out of a GGUF: pieces, and the merges that their scores mean.

SentencePiece's BPE joins the two neighbours whose piece has the highest score; a list of merges
that is sorted by it does the same. Knows no file, and nothing of added tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokenizers.decoders import Decoder
    from tokenizers.normalizers import Normalizer

__all__ = ("SPACE", "decoder", "merges_of", "normalizer")

SPACE = "▁"


def merges_of(
    ids: Mapping[str, int], scores: Mapping[str, float], *, longest_first: bool
) -> list[tuple[str, str]]:
    """Every way to make a piece of `scores` out of two of `ids`, the best piece first.

    Of equal pieces those that begin with the longest part come first (`longest_first`), else those
    with the lowest ids: published files of different years differ in it, and so do fingerprints.
    """
    found: list[tuple[Any, tuple[str, str]]] = []
    for order, (piece, score) in enumerate(scores.items()):
        for at in range(1, len(piece)):
            left, right = piece[:at], piece[at:]
            if left in ids and right in ids:
                parts: tuple[int, ...] = (order, ids[left], ids[right])
                if longest_first:
                    parts = (-len(left), -len(right), order)
                found.append(((-score, *parts), (left, right)))
    found.sort(key=lambda each: each[0])
    return [pair for _, pair in found]


def normalizer(add_space_prefix: bool) -> Normalizer:
    from tokenizers.normalizers import Prepend, Replace, Sequence

    spaces = Replace(" ", SPACE)
    return Sequence([Prepend(SPACE), spaces]) if add_space_prefix else spaces


def decoder(add_space_prefix: bool) -> Decoder:
    from tokenizers.decoders import ByteFallback, Fuse, Replace, Strip
    from tokenizers.decoders import Sequence as Steps

    steps: Sequence[Decoder] = [Replace(SPACE, " "), ByteFallback(), Fuse()]
    return Steps([*steps, Strip(" ", 1, 0)] if add_space_prefix else list(steps))
