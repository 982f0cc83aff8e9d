"""Penalties in Triton: the ids so far are counted, then each is penalised once, by whichever of
its occurrences comes first; that changes no bit."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from tokenwire.kernels.aot.specialisation import Specialisation, meta

__all__ = ("SPECIALISATIONS", "penalties")

BLOCK = 1024
LENGTHS = ["prompt_stride", "output_stride", "prompt_length", "output_length"]
"""They change from step to step: a kernel for each would be compiled anew."""


@triton.jit
def seen_ids(
    prompt, output, row, prompt_stride, output_stride, prompt_length, output_length, vocabulary,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """(ids, which are ids, which are of the output) of a block of prompt and output together."""
    place = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    in_prompt = place < prompt_length
    after = place - prompt_length
    in_output = (after >= 0) & (after < output_length)
    first = tl.load(prompt + row * prompt_stride + place, mask=in_prompt, other=vocabulary)
    second = tl.load(output + row * output_stride + after, mask=in_output, other=vocabulary)
    id = tl.where(in_prompt, first, second)
    return id, id < vocabulary, in_output


@triton.jit(do_not_specialize=LENGTHS)
def penalties_count_kernel(
    prompt, output, marks, counts, prompt_stride, output_stride, prompt_length, output_length,
    vocabulary, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    id, there, in_output = seen_ids(
        prompt, output, row, prompt_stride, output_stride, prompt_length, output_length,
        vocabulary, BLOCK,
    )  # fmt: skip
    one = tl.full((BLOCK,), 1, tl.int32)
    tl.store(marks + row * vocabulary + id, one, mask=there)
    tl.atomic_add(counts + row * vocabulary + id, one, mask=there & in_output)


@triton.jit(do_not_specialize=LENGTHS)
def penalties_apply_kernel(
    logits, prompt, output, marks, counts, repetition, frequency, presence, row_stride,
    prompt_stride, output_stride, prompt_length, output_length, vocabulary, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    id, there, _ = seen_ids(
        prompt, output, row, prompt_stride, output_stride, prompt_length, output_length,
        vocabulary, BLOCK,
    )  # fmt: skip
    zero = tl.full((BLOCK,), 0, tl.int32)
    mine = tl.atomic_xchg(marks + row * vocabulary + id, zero, mask=there)
    mine = there & (mine == 1)
    count = tl.load(counts + row * vocabulary + id, mask=mine, other=0)
    value = tl.load(logits + row * row_stride + id, mask=mine, other=0.0)
    factor = tl.load(repetition + row)
    scaled = tl.where(value > 0, tl.div_rn(value, factor + zero), value * factor)
    value = tl.where(factor != 1.0, scaled, value)
    less = value - tl.load(frequency + row) * count.to(tl.float32)
    less = less - tl.where(count > 0, tl.load(presence + row), 0.0)
    tl.store(logits + row * row_stride + id, tl.where(count > 0, less, value), mask=mine)


def penalties(
    logits: Tensor,
    prompt: Tensor,
    output: Tensor,
    repetition: Tensor,
    frequency: Tensor,
    presence: Tensor,
) -> None:
    """See reference.penalties."""
    rows, vocabulary = logits.shape
    lengths = prompt.shape[1], output.shape[1]
    if not (rows and sum(lengths)):
        return
    marks, counts = torch.zeros(
        (2, rows, vocabulary), dtype=torch.int32, device=logits.device
    ).unbind()
    grid = (rows, triton.cdiv(sum(lengths), BLOCK))
    penalties_count_kernel[grid](
        prompt, output, marks, counts, prompt.stride(0), output.stride(0), *lengths, vocabulary,
        BLOCK=BLOCK,
    )  # fmt: skip
    penalties_apply_kernel[grid](
        logits, prompt, output, marks, counts, repetition, frequency, presence, logits.stride(0),
        prompt.stride(0), output.stride(0), *lengths, vocabulary, BLOCK=BLOCK,
    )  # fmt: skip


def _launch() -> None:
    reals = meta(64, dtype=torch.float32)
    prompt, output = meta(64, 2048, dtype=torch.int64), meta(64, 512, dtype=torch.int64)
    penalties(meta(64, 151936, dtype=torch.float32), prompt, output, reals, reals, reals)


SPECIALISATIONS = (Specialisation("float32", _launch),)
