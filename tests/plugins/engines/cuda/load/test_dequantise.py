"""Blocks of any bits become what the package gguf makes of them, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
gguf = pytest.importorskip("gguf")

from tokenwire.plugins.engines.cuda.load import dequantise  # noqa: E402

pytestmark = pytest.mark.torch

HALVES = {"Q4_0": (0,), "Q4_1": (0, 2), "Q8_0": (0,), "Q4_K": (0, 2), "Q6_K": (208,)}
"""Where a block's float16 values are: random bits there could be NaNs, which equal nothing."""


@pytest.mark.parametrize("kind", dequantise.BLOCKS)
def test_any_blocks_are_what_gguf_says(kind, monkeypatch) -> None:
    width, size, _ = dequantise.BLOCKS[kind]
    assert gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]] == (size, width)
    monkeypatch.setattr(dequantise, "AT_ONCE", 3 * size)  # The last piece is a short one.
    random = np.random.default_rng(1)
    raw = random.integers(0, 256, (5, 4 * width), dtype=np.uint8)
    blocks = raw.reshape(-1, width)
    for at in HALVES[kind]:
        halves = random.standard_normal(len(blocks)).astype(np.float16)
        blocks[:, at : at + 2] = halves.view(np.uint8).reshape(-1, 2)
    wanted = gguf.dequantize(raw, gguf.GGMLQuantizationType[kind])
    found = dequantise.dequantised(torch.from_numpy(raw), kind, (5, 4 * size))
    assert (found.numpy().view(np.uint32) == wanted.view(np.uint32)).all()
