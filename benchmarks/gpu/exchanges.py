"""A part of the check that measures what is on either side of an exchange of experts' rows, over
the roofline. Sends nothing: bytes are those of the GPU's own memory."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from apart import Asked, Found, tried
from distances import BF16, rows_of

from tokenwire.core.cost.exchange import row_bytes
from tokenwire.kernels.bench import roofline
from tokenwire.kernels.cases import Arguments, Bench
from tokenwire.kernels.ep_dispatch.reference import ep_pack, ep_plan
from tokenwire.kernels.fp8_quant.reference import fp8_quant
from tokenwire.kernels.op import Signature

__all__ = ("exchange",)


def exchange(asked: Asked) -> Iterator[Found]:
    """What is on either side of an exchange among 8 ranks of 16 experts, top 8."""
    limits, hidden = roofline(asked.device), 256 if asked.small else 4096
    yield "roofline", {"bandwidth": limits.bandwidth, "peak": limits.peak}
    for tokens in (8,) if asked.small else (64, 512, 4096):
        for op, bench in _exchanged(tokens, hidden):
            yield from tried(rows_of(op, bench, limits, asked.device))


def _picked(tokens: int, device: torch.device) -> torch.Tensor:
    generator = torch.Generator().manual_seed(tokens)
    scores = torch.rand(tokens, 128, generator=generator)
    return scores.topk(8).indices.int().to(device)


def _exchanged(tokens: int, hidden: int) -> Iterator[tuple[str, Bench]]:
    """A rank packs its own tokens, and gets what 8 such ranks have for its 16 experts."""
    cpu = torch.device("cpu")
    counts, _, _ = ep_plan(_picked(tokens, cpu), 8, 16)
    rows, pairs = int(counts[:, 0].sum()), tokens * 8
    every = _picked(8 * tokens, cpu)
    mine = every < 16
    came, here = int(mine.any(1).sum()), int(mine.sum())
    row = hidden * 2

    def plan(device: torch.device) -> Arguments:
        return _picked(tokens, device), 8, 16

    yield "ep_plan", Bench(f"{tokens} tokens", Signature(), plan, pairs * 12)
    for fp8 in (False, True):
        there, _ = row_bytes(hidden, fp8=fp8)
        kind = "fp8" if fp8 else "bf16"

        def pack(device: torch.device, is_fp8: bool = fp8) -> Arguments:
            experts = _picked(tokens, device)
            x = torch.randn(tokens, hidden, device=device, dtype=torch.bfloat16)
            _, order, _ = ep_plan(experts, 8, 16)
            if not is_fp8:
                return x, order[:rows], experts
            q, scales = fp8_quant(x)
            return q, order[:rows], experts, None, scales

        moved = (tokens + rows) * there + rows * 8 * 4 * 2
        name = f"{kind} {tokens} tokens x {hidden}, {rows} rows"
        yield "ep_pack", Bench(name, BF16, pack, int(moved))
        for masked in (False, True):

            def unpack(
                device: torch.device, is_fp8: bool = fp8, is_masked: bool = masked
            ) -> Arguments:
                experts = every.to(device)
                order = mine.any(1).nonzero()[:, 0].int().to(device)
                x = torch.randn(8 * tokens, hidden, device=device, dtype=torch.bfloat16)
                q, scales = fp8_quant(x) if is_fp8 else (x, None)
                wire = ep_pack(q, order, experts, None, scales)
                shape = (16, came) if is_masked else (came * 8,)
                room = torch.empty(*shape, hidden, device=device, dtype=torch.bfloat16)
                return wire, room, 8, 0, 16, is_fp8

            form = "masked" if masked else "contiguous"
            moved = came * there + here * row + came * 8 * 8
            name = f"{kind} {form}, {came} rows to {here} x {hidden}"
            yield "ep_unpack", Bench(name, BF16, unpack, int(moved))

    def give_back(device: torch.device) -> Arguments:
        places = torch.full((came * 8,), -1, dtype=torch.int32)
        places[torch.randperm(came * 8)[:here]] = torch.randperm(here).int()
        results = torch.randn(here, hidden, device=device, dtype=torch.bfloat16)
        return results, places.view(-1, 8).to(device), here

    name = f"bf16 {here} x {hidden}"
    yield "ep_return", Bench(name, BF16, give_back, 2 * here * row + came * 8 * 4)

    def combine(device: torch.device) -> Arguments:
        experts = _picked(tokens, device)
        _, _, inverse = ep_plan(experts, 8, 16)
        results = torch.randn(pairs, hidden, device=device, dtype=torch.bfloat16)
        weights = torch.rand(tokens, 8, device=device)
        return results, inverse, weights, experts

    name = f"bf16 {tokens} tokens x {hidden}"
    yield "ep_combine", Bench(name, BF16, combine, (pairs + tokens) * row + pairs * 12)
