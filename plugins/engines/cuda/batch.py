"""What one step gives a network: ids, positions, where KV goes, and the KV caches. Knows no job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from tokenwire.kernels.attention.batch import AttentionBatch

__all__ = ("Batch", "KvCache")


@dataclass(frozen=True, slots=True)
class Batch:
    """One step's tokens: first the decode tokens, one a sequence, then those of prefills.

    A KV group is a set of layers that share block tables (`ModelConfig.groups`). All tensors are
    on the network's device.
    """

    ids: Tensor
    """[T] int64."""
    positions: Tensor
    """[T] int64, each token's place in its sequence."""
    slots: tuple[Tensor, ...]
    """[T] int64 a group: block * block_size + offset that the token's KV goes to; -1: nowhere."""
    decode: tuple[AttentionBatch | None, ...]
    """Of the first `decode_tokens` tokens, a group; None where there are none."""
    prefill: tuple[AttentionBatch | None, ...]
    """Of the other tokens, a group; None where there are none."""
    decode_tokens: int
    logit_rows: Tensor
    """[R] int64: the tokens whose logits are wanted. For the runner; networks do not read it."""
    span: int = 0
    """Where parts share experts: the most tokens that one of them has in this step. 0: no part
    shares. Tokens whose slots are -1 fill a step up, and go to no expert."""
    adapters: Tensor | None = None
    """[T] int32: each token's LoRA slot, 0 for none. None: no token has one."""


@dataclass(frozen=True, slots=True)
class KvCache:
    """One layer's KV: blocks of `block_size` tokens."""

    k: Tensor
    """[N, block_size, Hkv, D], in the network's dtype or float8_e4m3fn."""
    v: Tensor
    """As `k`."""
    k_scale: float = 1.0
    """A value is what is stored times it, in a cache of float8_e4m3fn; in others it is not read."""
    v_scale: float = 1.0
