"""Sampling on the CPU where draw.cpp can be compiled: it names the few ids that can win, and the
reference's noise decides among them."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tokenwire.kernels.native import library
from tokenwire.kernels.sample.cpu import drawn, filtered_rows, likeliest
from tokenwire.kernels.sample.reference import gumbel

__all__ = ("SOURCE", "sample")

SOURCE = Path(__file__).with_name("draw.cpp")
ROOM = 4096


def sample(
    logits: Tensor,
    temperature: Tensor,
    top_k: Tensor,
    top_p: Tensor,
    min_p: Tensor,
    seeds: Tensor,
    positions: Tensor,
) -> Tensor:
    """See reference.sample."""
    ids = likeliest(logits)
    likely = ids.tolist()
    room = torch.empty(ROOM, dtype=torch.int64)
    for row, logprobs in filtered_rows(logits, temperature, top_k, top_p, min_p):
        seed, position = seeds[row], positions[row]
        count = -1
        if not logprobs[likely[row]].isnan():
            count = _function()(
                logprobs.data_ptr(), logprobs.shape[0], likely[row], int(seed), int(position),
                ROOM, room.data_ptr(),
            )  # fmt: skip
        if count == 1:
            ids[row] = room[0]
        elif count > 1:
            kept = room[:count]
            scores = logprobs[kept].double() + gumbel(seed, position, kept)
            ids[row] = kept[torch.argmax(scores)]
        else:
            ids[row] = drawn(logprobs, seed, position)
    return ids


@lru_cache(maxsize=1)
def _function() -> Any:
    function = library(SOURCE).candidates
    whole = ctypes.c_int64
    function.argtypes = [ctypes.c_void_p, *[whole] * 5, ctypes.c_void_p]
    function.restype = whole
    return function
