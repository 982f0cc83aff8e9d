"""A token's row on its way to another rank: values, scales, experts, weights in a run of words.

Why one run: a step of few tokens pays for each message, not for its length. A row has, in words of
4 bytes: the values; where these are fp8, a float32 scale for each 128; top_k experts (physical ids
of the whole group, -1 for none); where they travel, top_k float32 weights; zeros up to a multiple
of four words, so that rows begin where wide loads may.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

__all__ = ("GROUP", "WORD", "Wire", "wire_of")

WORD = 4
GROUP = 128
"""Values of an fp8 row that share a scale."""
ALIGNED = 4


@dataclass(frozen=True, slots=True)
class Wire:
    """Where the words of a row stand."""

    values: int
    """How many words of values, from the first."""
    scales: int
    """How many follow."""
    top_k: int
    has_weights: bool

    @property
    def experts(self) -> int:
        """The first expert's word."""
        return self.values + self.scales

    @property
    def weights(self) -> int:
        """The first weight's word, where there are weights."""
        return self.experts + self.top_k

    @property
    def used(self) -> int:
        return self.weights + (self.top_k if self.has_weights else 0)

    @property
    def words(self) -> int:
        return -(-self.used // ALIGNED) * ALIGNED


def wire_of(width: int, dtype: torch.dtype, top_k: int, *, has_weights: bool, is_fp8: bool) -> Wire:
    """`dtype`: of the values that do not travel in fp8. Raises ValueError where a row is no whole
    number of words."""
    size = width * (1 if is_fp8 else dtype.itemsize)
    if size % WORD:
        raise ValueError(
            f"rows of {width} numbers are {size} bytes, which is no whole number of 4-byte words: "
            "wanted a model whose hidden size is a multiple of four"
        )
    return Wire(size // WORD, -(-width // GROUP) if is_fp8 else 0, top_k, has_weights)
