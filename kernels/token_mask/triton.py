"""A grammar's bitmask in Triton: a program masks a block of ids of a row."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from tokenwire.kernels.aot.specialisation import Specialisation, meta

__all__ = ("SPECIALISATIONS", "token_mask")

BLOCK = 4096


@triton.jit
def token_mask_kernel(logits, bits, row_stride, bits_stride, vocabulary, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    id = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    there = id < vocabulary
    word = tl.load(bits + row * bits_stride + id // 32, mask=there, other=-1)
    refused = there & (((word >> (id % 32)) & 1) == 0)
    never = tl.full((BLOCK,), float("-inf"), logits.dtype.element_ty)
    tl.store(logits + row * row_stride + id, never, mask=refused)


def token_mask(logits: Tensor, bits: Tensor) -> None:
    """See reference.token_mask."""
    rows, vocabulary = logits.shape
    if rows:
        token_mask_kernel[(rows, triton.cdiv(vocabulary, BLOCK))](
            logits, bits, logits.stride(0), bits.stride(0), vocabulary, BLOCK=BLOCK
        )


def _launch() -> None:
    token_mask(meta(64, 151936, dtype=torch.float32), meta(64, 4748, dtype=torch.int32))


SPECIALISATIONS = (Specialisation("float32", _launch),)
