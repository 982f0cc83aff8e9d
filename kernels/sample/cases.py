"""Rows to sample: every filter alone and together, ties, impossible ids, all in one batch."""

from __future__ import annotations

import torch
from torch import Tensor

from tokenwire.kernels.cases import Arguments, Bench, Case, noise
from tokenwire.kernels.op import Signature

__all__ = ("BENCHES", "CASES")

SETTINGS = (
    (0.0, 0, 1.0, 0.0),
    (1.0, 0, 1.0, 0.0),
    (0.7, 5, 1.0, 0.0),
    (1.3, 0, 0.5, 0.0),
    (0.9, 0, 1.0, 0.2),
    (0.7, 40, 0.9, 0.05),
    (2.5, 1, 0.3, 0.0),
    (0.3, 0, 1e-9, 1.0),
)
"""Temperature, top_k, top_p, min_p: a row each."""


def _parameters(device: torch.device | str = "cpu", times: int = 1) -> tuple[Tensor, ...]:
    columns = list(zip(*SETTINGS * times, strict=True))
    count = len(SETTINGS) * times
    return (
        torch.tensor(columns[0], device=device),
        torch.tensor(columns[1], device=device, dtype=torch.int32),
        torch.tensor(columns[2], device=device),
        torch.tensor(columns[3], device=device),
        torch.arange(count, device=device) * 7919 - 20000,
        torch.arange(count, device=device) * (1 << 33),
    )


def _arguments(vocabulary: int, spread: float, masked: int) -> Arguments:
    """Logits in steps of a quarter, so that many are equal."""
    logits = (noise(len(SETTINGS), vocabulary) * spread * 4).round() / 4
    if masked:
        logits[:, :masked] = float("-inf")
    return logits, *_parameters()


def _case(vocabulary: int, spread: float, masked: int = 0) -> Case:
    return Case(
        f"vocabulary of {vocabulary}, spread {spread:g}, {masked} impossible",
        Signature(),
        lambda: _arguments(vocabulary, spread, masked),
        rows=tuple(range(7)),
    )


def _bench(times: int, row: tuple[float, int, float, float], name: str) -> Bench:
    def make(device: torch.device) -> Arguments:
        logits = torch.randn(times, 151936, device=device) * 3
        whole = torch.arange(times, device=device)
        heat, count, mass, least = (torch.full((times,), x, device=device) for x in row)
        return logits, heat, count.int(), mass, least, whole, whole

    return Bench(f"{times} rows {name}", Signature(), make, times * 151936 * 4)


CASES = {"sample": (_case(4100, 2.0), _case(257, 0.1, 250), _case(1, 1.0))}
BENCHES = {
    "sample": (
        _bench(256, (0.0, 0, 1.0, 0.0), "greedy"),
        _bench(256, (1.0, 0, 1.0, 0.0), "unfiltered"),
        _bench(256, (0.7, 0, 0.9, 0.0), "top_p"),
        _bench(256, (0.7, 50, 1.0, 0.0), "top_k"),
    )
}
