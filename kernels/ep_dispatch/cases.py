"""Rows to send and rows that came: skewed, several experts of a token on one rank, pairs that go
nowhere, no rows for a rank, fp8, both forms."""

from __future__ import annotations

import torch
from torch import Tensor

from tokenwire.kernels.cases import Arguments, Bench, Case, noise
from tokenwire.kernels.ep_dispatch.reference import ep_pack, ep_plan
from tokenwire.kernels.fp8_quant.reference import fp8_quant
from tokenwire.kernels.moe_permute.cases import picked
from tokenwire.kernels.op import Signature
from tokenwire.kernels.support import FLOATS, FP8

__all__ = ("BENCHES", "CASES")


def _nowhere(experts: Tensor) -> Tensor:
    """Some pairs, and the whole of the last token, without an expert."""
    experts = experts.clone()
    experts[::3, 0] = -1
    experts[-1] = -1
    return experts


ROUTINGS = {
    "top 3 of 8 on 4 ranks": (picked(11, 3, 8), 4),
    "skewed, 16 on 8 ranks": (picked(13, 2, 16, skew=1.0), 8),
    "all on the last rank": (picked(9, 4, 4) + 4, 2),
    "top 6 of 6 on 2 ranks": (picked(7, 6, 6), 2),
    "more tokens than a chunk": (picked(700, 2, 12), 3),
    "pairs that go nowhere": (_nowhere(picked(10, 3, 12)), 3),
    "all go nowhere": (torch.full((4, 2), -1, dtype=torch.int32), 2),
    "one rank": (picked(5, 2, 6), 1),
}


def _slots(name: str) -> int:
    """Experts of a rank."""
    experts, ranks = ROUTINGS[name]
    if name == "all on the last rank":
        return 4
    return max(-(-(int(experts.max()) + 1) // ranks), 1)


def _plan(name: str) -> Case:
    experts, ranks = ROUTINGS[name]
    return Case(name, Signature(), lambda: (experts.clone(), ranks, _slots(name)))


def _packed(name: str, width: int, dtype: torch.dtype, form: str) -> Arguments:
    """Of `ep_pack`. `form`: "", "weights" or "fp8"."""
    experts, ranks = ROUTINGS[name]
    tokens, top_k = experts.shape
    x = noise(tokens, width, dtype=dtype)
    _, order, _ = ep_plan(experts, ranks, _slots(name))
    weights = noise(tokens, top_k, seed=3).softmax(-1) if form == "weights" else None
    if form != "fp8":
        return x, order, experts.clone(), weights
    q, scales = fp8_quant(x)
    return q, order, experts.clone(), weights, scales


def _pack(name: str, width: int, dtype: torch.dtype = torch.float32, form: str = "") -> Case:
    kind = str(dtype).removeprefix("torch.")
    return Case(
        f"{kind} {width} {form}, {name}",
        Signature(dtype=dtype),
        lambda: _packed(name, width, dtype, form),
    )


def _no_token() -> Arguments:
    """As a rank packs that has none in a step of two."""
    experts = torch.zeros((0, 2), dtype=torch.int32)
    return noise(0, 8), torch.full((2,), -1, dtype=torch.int32), experts, noise(0, 2)


def _unpack(
    name: str,
    width: int,
    dtype: torch.dtype = torch.float32,
    *,
    fp8: bool = False,
    stays: bool = False,
    masked: bool,
) -> Case:
    """As the last rank gets them all. `stays`: in fp8."""
    experts, ranks = ROUTINGS[name]
    slots, kind = _slots(name), str(dtype).removeprefix("torch.")

    def make() -> Arguments:
        given = _packed(name, width, dtype, "fp8" if fp8 else "weights")
        wire, tokens = ep_pack(*given), given[1].numel()
        shape = (slots, tokens) if masked else (tokens * experts.shape[1],)
        rows = noise(*shape, width, dtype=dtype, seed=9)
        given = wire, rows, experts.shape[1], (ranks - 1) * slots, slots, fp8
        if not stays:
            return given
        scales = noise(*shape, -(-width // 128), seed=8)
        return wire, rows.to(FP8), *given[2:], scales

    form = ("masked" if masked else "contiguous") + (" fp8" if fp8 else "")
    form += " that stays" if stays else ""
    written = (1, 6) if stays else (1,)
    return Case(f"{kind} {width} {form}, {name}", Signature(dtype=dtype), make, written=written)


def _plan_bench(tokens: int) -> Bench:
    def make(device: torch.device) -> Arguments:
        return picked(tokens, 8, 128).to(device), 8, 16

    return Bench(f"{tokens} tokens, top 8, 8 ranks of 16", Signature(), make, tokens * 8 * 12)


def _pack_bench(tokens: int) -> Bench:
    def make(device: torch.device) -> Arguments:
        experts = picked(tokens, 8, 128).to(device)
        order = torch.arange(tokens, dtype=torch.int32, device=device)
        return torch.randn(tokens, 4096, device=device, dtype=torch.bfloat16), order, experts

    moved = tokens * (4096 * 4 + 8 * 8)
    return Bench(f"bf16 {tokens}x4096 top 8", Signature(dtype=torch.bfloat16), make, moved)


def _unpack_bench(tokens: int) -> Bench:
    """The rows of 8 ranks, of which one has 16 of 128 experts."""
    experts, every = picked(8 * tokens, 8, 128), 8 * tokens
    here = int((experts < 16).sum())

    def make(device: torch.device) -> Arguments:
        x = torch.randn(every, 4096, device=device, dtype=torch.bfloat16)
        order = torch.arange(every, dtype=torch.int32, device=device)
        wire = ep_pack(x, order, experts.to(device))
        room = torch.empty(every * 8, 4096, device=device, dtype=torch.bfloat16)
        return wire, room, 8, 0, 16

    moved = here * 4096 * 4 + every * 8 * 8
    return Bench(f"bf16 8x{tokens}x4096 top 8", Signature(dtype=torch.bfloat16), make, moved)


CASES = {
    "ep_plan": tuple(_plan(name) for name in ROUTINGS),
    "ep_pack": (
        *(_pack("pairs that go nowhere", 40, dtype) for dtype in FLOATS),
        _pack("top 3 of 8 on 4 ranks", 1300),
        _pack("top 6 of 6 on 2 ranks", 30, torch.bfloat16, "weights"),
        _pack("skewed, 16 on 8 ranks", 256, torch.bfloat16, "fp8"),
        _pack("all go nowhere", 8, form="weights"),
        Case("float32 8, no token", Signature(), _no_token),
    ),
    "ep_unpack": (
        *(_unpack("top 3 of 8 on 4 ranks", 40, dtype, masked=False) for dtype in FLOATS),
        *(_unpack("pairs that go nowhere", 36, dtype, masked=True) for dtype in FLOATS),
        _unpack("all on the last rank", 1300, masked=False),
        _unpack("top 6 of 6 on 2 ranks", 20, masked=True),
        _unpack("more tokens than a chunk", 4, masked=False),
        _unpack("all go nowhere", 8, masked=False),
        _unpack("skewed, 16 on 8 ranks", 256, fp8=True, masked=False),
        _unpack("top 3 of 8 on 4 ranks", 1280, fp8=True, masked=True),
        _unpack("skewed, 16 on 8 ranks", 256, fp8=True, stays=True, masked=False),
        _unpack("pairs that go nowhere", 200, fp8=True, stays=True, masked=True),
    ),
}
BENCHES = {
    "ep_plan": (_plan_bench(64), _plan_bench(8192)),
    "ep_pack": (_pack_bench(64), _pack_bench(8192)),
    "ep_unpack": (_unpack_bench(64), _unpack_bench(1024)),
}
