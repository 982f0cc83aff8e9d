"""The numbers that a scheduler and its KV pools are built with. Knows no memory: blocks are counted
by whoever measures it."""

from __future__ import annotations

from typing import final

from msgspec import Struct

__all__ = ("GroupSpec", "Limits")


@final
class Limits(Struct, frozen=True):
    max_batch_size: int
    """Sequences that run at once."""
    max_batch_tokens: int
    """Tokens of one step, drafts included."""
    block_size: int
    """Tokens of one KV block, in every group."""
    max_model_len: int
    """Tokens of KV that one sequence may hold."""
    long_prefill_tokens: int = 0
    """Most tokens that one row may have in one step; 0: no cap of its own."""


@final
class GroupSpec(Struct, frozen=True):
    """Layers that share a block table. Block 0 is the null block and belongs to nobody."""

    blocks: int
    """Blocks in the tensors, the null block included."""
    window: int = 0
    """A query sees this many keys, its own included; 0: all of them."""
