"""Routings to prove and to measure: many experts and few, ties, groups with a bias, no numbers."""

from __future__ import annotations

from typing import Any

import torch

from tokenwire.kernels.cases import Arguments, Bench, Case, noise
from tokenwire.kernels.op import Signature
from tokenwire.kernels.support import FLOATS

__all__ = ("BENCHES", "CASES")


def _tied(rows: int, experts: int) -> torch.Tensor:
    """Few different numbers, so that most are equal to others."""
    return (noise(rows, experts) * 2).round() / 2


def _case(name: str, logits: torch.Tensor, *options: Any, **keywords: Any) -> Case:
    signature = Signature(dtype=logits.dtype)
    return Case(name, signature, lambda: (logits.clone(), *options), keywords=keywords, rows=(0,))


def _deepseek(rows: int, experts: int, groups: int, **keywords: Any) -> Case:
    bias = noise(experts, seed=1) * 0.3
    return _case(
        f"sigmoid, {experts} experts in {groups} groups",
        noise(rows, experts) * 2,
        *(3, "sigmoid"),
        **{"bias": bias, "groups": groups, "groups_kept": 2, "scale": 2.5, **keywords},
    )


def _with_nan() -> torch.Tensor:
    logits = noise(3, 8)
    logits[1, :5] = torch.nan
    logits[2, 5] = -torch.inf
    return logits


def _bench(rows: int) -> Bench:
    def make(device: torch.device) -> Arguments:
        return torch.randn(rows, 128, device=device, dtype=torch.bfloat16), 8

    signature = Signature(dtype=torch.bfloat16)
    return Bench(f"bf16 {rows}x128 top 8", signature, make, rows * (128 * 2 + 8 * 8))


CASES = {
    "moe_route": (
        *(
            _case(f"{str(dtype).removeprefix('torch.')} 7x40 top 5", noise(7, 40).to(dtype), 5)
            for dtype in FLOATS
        ),
        _case("ties", _tied(6, 20), 4),
        _case("not renormalised", noise(4, 16), 4, "softmax", False),
        _case("every expert", noise(3, 6), 6),
        _case("no numbers among them", _with_nan(), 3, "sigmoid", False),
        _deepseek(9, 32, 8),
        _deepseek(5, 24, 4, group_top=1),
        _deepseek(5, 12, 3, renormalise=False),
        _deepseek(9, 6, 6, groups_kept=3),
    )
}
BENCHES = {"moe_route": (_bench(64), _bench(8192))}
