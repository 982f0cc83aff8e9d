"""Runs in a process of its own, under TRITON_INTERPRET=1: prints the reports of `check` as JSON,
then whether the interpreter adds bfloat16 rightly."""

from __future__ import annotations

import json
from dataclasses import asdict

import torch
import triton
import triton.language as tl

from tokenwire.kernels.grid import reports
from tokenwire.kernels.mla import splits
from tokenwire.kernels.mla import triton as mla


@triton.jit
def add_bfloat16(x, y, SIZE: tl.constexpr):
    place = tl.arange(0, SIZE)
    tl.store(y + place, tl.load(x + place) + tl.load(x + place))


def bfloat16_is_right() -> bool:
    x = torch.tensor([1.5, -2.0, 0.25, 100.0], dtype=torch.bfloat16)
    y = torch.zeros_like(x)
    try:
        add_bfloat16[(1,)](x, y, SIZE=4)
    except Exception:
        return False
    return bool(torch.equal(y, x + x))


def main() -> None:
    torch.set_num_threads(1)
    for report in reports(device="cpu"):
        print(json.dumps(asdict(report)))
    # Prefill over a compressed cache a head at a time; decode a token at a time, in a few parts
    # that are longer for longer sequences.
    mla.WORKSPACE = splits.ROOM = 1
    splits.SPLIT, splits.most_splits = 32, lambda heads, latent: 3
    for report in reports(("mla_prefill", "mla_decode"), device="cpu"):
        print(json.dumps(asdict(report)))
    print(json.dumps({"bfloat16": bfloat16_is_right()}))


if __name__ == "__main__":
    main()
