"""Log probabilities in Triton: sum, chosen and rank in one program a row; torch finds the top."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from tokenwire.kernels.aot.specialisation import Specialisation, meta

__all__ = ("SPECIALISATIONS", "logprobs")

BLOCK = 4096


@triton.jit
def logprobs_kernel(
    logits, ids, chosen, rank, sums, row_stride, vocabulary, BLOCK: tl.constexpr
):  # fmt: skip
    index = tl.program_id(0)
    row = logits + index.to(tl.int64) * row_stride
    peaks = tl.full((BLOCK,), float("-inf"), tl.float32)
    for start in range(0, vocabulary, BLOCK):
        id = start + tl.arange(0, BLOCK)
        value = tl.load(row + id, mask=id < vocabulary, other=float("-inf")).to(tl.float32)
        peaks = tl.maximum(peaks, value)
    peak = tl.max(peaks, 0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, vocabulary, BLOCK):
        id = start + tl.arange(0, BLOCK)
        value = tl.load(row + id, mask=id < vocabulary, other=float("-inf")).to(tl.float32)
        total += tl.exp(value - peak)
    log_sum = tl.log(tl.sum(total, 0))
    own = (tl.load(row + tl.load(ids + index)).to(tl.float32) - peak) - log_sum
    better = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, vocabulary, BLOCK):
        id = start + tl.arange(0, BLOCK)
        value = tl.load(row + id, mask=id < vocabulary, other=float("-inf")).to(tl.float32)
        better += (((value - peak) - log_sum) > own).to(tl.int32)
    tl.store(chosen + index, own)
    tl.store(rank + index, (tl.sum(better, 0) + 1).to(tl.int64))
    tl.store(sums + index * 2, peak)
    tl.store(sums + index * 2 + 1, log_sum)


def logprobs(logits: Tensor, ids: Tensor, top: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """See reference.logprobs."""
    rows, vocabulary = logits.shape
    chosen = torch.empty(rows, dtype=torch.float32, device=logits.device)
    rank = torch.empty(rows, dtype=torch.int64, device=logits.device)
    sums = torch.empty((rows, 2), dtype=torch.float32, device=logits.device)
    if rows:
        block = min(BLOCK, triton.next_power_of_2(vocabulary))
        logprobs_kernel[(rows,)](
            logits, ids, chosen, rank, sums, logits.stride(0), vocabulary, BLOCK=block,
            num_warps=max(4, block // 512),
        )  # fmt: skip
    values, best = torch.topk(logits.float(), min(top, vocabulary), -1)
    return chosen, rank, (values - sums[:, :1]) - sums[:, 1:], best


def _launch() -> None:
    logprobs(meta(64, 151936, dtype=torch.float32), meta(64, dtype=torch.int64), 5)


SPECIALISATIONS = (Specialisation("float32", _launch),)
