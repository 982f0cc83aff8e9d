"""Rotary position embedding in Triton: a program turns some heads of a token, queries or keys."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from tokenwire.kernels.aot.specialisation import Specialisation, meta

__all__ = ("SPECIALISATIONS", "rope")

MOST_HEADS = 32
"""Heads of a program: more would not fit its registers."""


@triton.jit
def turn_heads(x, token_stride, head_stride, first, count, token, cos, sin,
               HALF: tl.constexpr, HEADS: tl.constexpr, WIDTH: tl.constexpr):  # fmt: skip
    """Heads first.. of one token, in place."""
    head = first + tl.arange(0, HEADS)
    column = tl.arange(0, WIDTH)
    inside = (head < count)[:, None] & (column < HALF)[None, :]
    low = x + token * token_stride + head[:, None] * head_stride + column[None, :]
    one = tl.load(low, mask=inside, other=0.0).to(tl.float32)
    two = tl.load(low + HALF, mask=inside, other=0.0).to(tl.float32)
    element = x.dtype.element_ty
    tl.store(low, (one * cos - two * sin).to(element), mask=inside)
    tl.store(low + HALF, (two * cos + one * sin).to(element), mask=inside)


@triton.jit
def rope_kernel(
    q, k, positions, table, q_token, q_head, k_token, k_head, table_row,
    Q_HEADS: tl.constexpr, K_HEADS: tl.constexpr, HALF: tl.constexpr, HEADS: tl.constexpr,
    WIDTH: tl.constexpr,
):  # fmt: skip
    """Programs (token, group of heads): first the queries' groups, then the keys'."""
    token = tl.program_id(0).to(tl.int64)
    group = tl.program_id(1)
    column = tl.arange(0, WIDTH)
    row = table + tl.load(positions + token) * table_row
    cos = tl.load(row + column, mask=column < HALF, other=0.0)[None, :]
    sin = tl.load(row + HALF + column, mask=column < HALF, other=0.0)[None, :]
    groups: tl.constexpr = (Q_HEADS + HEADS - 1) // HEADS
    if group < groups:
        turn_heads(q, q_token, q_head, group * HEADS, Q_HEADS, token, cos, sin,
                   HALF, HEADS, WIDTH)  # fmt: skip
    else:
        turn_heads(k, k_token, k_head, (group - groups) * HEADS, K_HEADS, token, cos, sin,
                   HALF, HEADS, WIDTH)  # fmt: skip


def rope(q: Tensor, k: Tensor, positions: Tensor, cos_sin: Tensor) -> tuple[Tensor, Tensor]:
    """See reference.py. The elements of a head lie side by side; tokens and heads at any stride."""
    tokens, q_heads, _ = q.shape
    k_heads = k.shape[1]
    if not tokens:
        return q, k
    half = cos_sin.shape[1] // 2
    heads = min(MOST_HEADS, triton.next_power_of_2(max(q_heads, k_heads)))
    groups = triton.cdiv(q_heads, heads) + triton.cdiv(k_heads, heads)
    rope_kernel[(tokens, groups)](
        q, k, positions, cos_sin, q.stride(0), q.stride(1), k.stride(0), k.stride(1),
        cos_sin.stride(0), Q_HEADS=q_heads, K_HEADS=k_heads, HALF=half, HEADS=heads,
        WIDTH=triton.next_power_of_2(half),
    )  # fmt: skip
    return q, k


def _launch(q_heads: int, k_heads: int, head: int) -> None:
    qkv = meta(32, q_heads + 2 * k_heads, head)
    q, k = qkv[:, :q_heads], qkv[:, q_heads : q_heads + k_heads]
    positions = meta(32, dtype=torch.int64)
    rope(q, k, positions, meta(4096, head, dtype=torch.float32))


SPECIALISATIONS = (
    Specialisation("bf16 32+8 heads of 128", lambda: _launch(32, 8, 128)),
    Specialisation("bf16 16+8 heads of 128", lambda: _launch(16, 8, 128), gated=False),
    Specialisation("bf16 9+3 heads of 64", lambda: _launch(9, 3, 64)),
    Specialisation("bf16 4+1 heads of 256", lambda: _launch(4, 1, 256), gated=False),
)
