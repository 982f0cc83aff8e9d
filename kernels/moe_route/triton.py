"""Routing in Triton: a program does one token, its experts laid out as groups x places."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from tokenwire.kernels.aot.specialisation import Specialisation, meta
from tokenwire.kernels.moe_route.reference import LEAST, Scoring

__all__ = ("SPECIALISATIONS", "moe_route")


@triton.jit
def moe_route_kernel(
    logits, bias, weights, experts, stride, scale,
    GROUPS: tl.constexpr, SIZE: tl.constexpr, ALL: tl.constexpr, WIDE: tl.constexpr,
    KEPT: tl.constexpr, GROUP_TOP: tl.constexpr, TOP: tl.constexpr, PLACES: tl.constexpr,
    SOFTMAX: tl.constexpr, BIASED: tl.constexpr, RENORMALISE: tl.constexpr, LEAST: tl.constexpr,
):  # fmt: skip
    """GROUPS of SIZE experts, rounded up to powers of two in ALL and WIDE; TOP in PLACES."""
    row = tl.program_id(0).to(tl.int64)
    group, place = tl.arange(0, ALL), tl.arange(0, WIDE)
    index = group[:, None] * SIZE + place[None, :]
    free = (group < GROUPS)[:, None] & (place < SIZE)[None, :]
    worst = -float("inf")
    score = tl.load(logits + row * stride + index, mask=free, other=worst).to(tl.float32)
    if SOFTMAX:
        largest = tl.max(tl.max(score, axis=1), axis=0)
        score = tl.exp(score - largest)
        score = score / tl.sum(tl.sum(score, axis=1), axis=0)
    else:
        score = tl.sigmoid(score)
    rank = score
    if BIASED:
        rank += tl.load(bias + index, mask=free, other=0.0)
    # Any comparison with what is no number is false.
    rank = tl.where(rank >= -3.4e38, rank, worst)
    if GROUPS > 1:
        best = tl.zeros((ALL,), dtype=tl.float32)
        left = free
        for _ in tl.static_range(GROUP_TOP):
            top = tl.max(tl.where(left, rank, worst), axis=1)
            best += top
            at = tl.min(tl.where(left & (rank >= top[:, None]), place[None, :], WIDE), axis=1)
            left = left & (place[None, :] != at[:, None])
        waits = group < GROUPS
        for _ in tl.static_range(KEPT):
            top = tl.max(tl.where(waits, best, worst), axis=0)
            at = tl.min(tl.where(waits & (best >= top), group, ALL), axis=0)
            waits = waits & (group != at)
        rank = tl.where(waits[:, None], worst, rank)
    slot = tl.arange(0, PLACES)
    picked = tl.zeros((PLACES,), dtype=tl.int32)
    weight = tl.zeros((PLACES,), dtype=tl.float32)
    for j in tl.static_range(TOP):
        top = tl.max(tl.max(tl.where(free, rank, worst), axis=1), axis=0)
        candidates = tl.where(free & (rank >= top), index, ALL * WIDE + GROUPS * SIZE)
        at = tl.min(tl.min(candidates, axis=1), axis=0)
        its = tl.sum(tl.sum(tl.where(index == at, tl.where(free, score, 0.0), 0.0), axis=1), axis=0)
        picked = tl.where(slot == j, at, picked)
        weight = tl.where(slot == j, its, weight)
        free = free & (index != at)
    if RENORMALISE:
        weight = weight / (tl.sum(weight, axis=0) + LEAST)
    to = row * TOP + slot
    tl.store(weights + to, weight * scale, mask=slot < TOP)
    tl.store(experts + to, picked, mask=slot < TOP)


def moe_route(
    logits: Tensor,
    top_k: int,
    scoring: Scoring = "softmax",
    renormalise: bool = True,
    *,
    bias: Tensor | None = None,
    groups: int = 1,
    groups_kept: int = 1,
    group_top: int = 2,
    scale: float = 1.0,
) -> tuple[Tensor, Tensor]:
    """See reference.py. The elements of a row lie side by side."""
    tokens, count = logits.shape
    weights = torch.empty((tokens, top_k), dtype=torch.float32, device=logits.device)
    experts = torch.empty((tokens, top_k), dtype=torch.int32, device=logits.device)
    if not tokens:
        return weights, experts
    size = count // groups
    wide = triton.next_power_of_2(size)
    moe_route_kernel[(tokens,)](
        logits, logits if bias is None else bias, weights, experts, logits.stride(0), float(scale),
        GROUPS=groups, SIZE=size, ALL=triton.next_power_of_2(groups), WIDE=wide,
        KEPT=groups_kept, GROUP_TOP=min(group_top, size), TOP=top_k,
        PLACES=triton.next_power_of_2(top_k), SOFTMAX=scoring == "softmax",
        BIASED=bias is not None, RENORMALISE=renormalise, LEAST=LEAST,
        num_warps=1 if count <= 128 else 2,
    )  # fmt: skip
    return weights, experts


def _deepseek() -> None:
    bias = meta(256, dtype=torch.float32)
    logits = meta(64, 256, dtype=torch.float32)
    moe_route(logits, 8, "sigmoid", bias=bias, groups=8, groups_kept=4, scale=2.5)


SPECIALISATIONS = (
    Specialisation("bf16 128 experts, top 8", lambda: moe_route(meta(64, 128), 8)),
    Specialisation("bf16 8 experts, top 2", lambda: moe_route(meta(64, 8), 2)),
    Specialisation("float32 256 experts in 8 groups, top 8", _deepseek),
)
