"""Shapes of published models, by name, so that a plan needs no checkpoint. Numbers alone."""

from __future__ import annotations

from typing import Final

from tokenwire.core.cost.shape import Gqa, Mla, ModelShape, Moe

__all__ = ("SHAPES", "shape_named")

_V3: Final = Mla(128, 512, 64, 128, 128, 1536)

SHAPES: Final[tuple[ModelShape, ...]] = (
    ModelShape(
        "deepseek-v3", 61, 7168, 129280, _V3, 3, 18432, Moe(256, 8, 2048, 2048),
        precision="fp8", max_context=163840,
    ),
    ModelShape(
        "kimi-k2", 61, 7168, 163840, Mla(64, 512, 64, 128, 128, 1536), 1, 18432,
        Moe(384, 8, 2048, 2048), precision="fp8", max_context=131072,
    ),
    ModelShape(
        "deepseek-v2-lite", 27, 2048, 102400, Mla(16, 512, 64, 128, 128), 1, 10944,
        Moe(64, 6, 1408, 2816), max_context=163840,
    ),
    ModelShape(
        "qwen3-235b-a22b", 94, 4096, 151936, Gqa(64, 4, 128), 0, 0, Moe(128, 8, 1536),
        max_context=40960,
    ),
    ModelShape(
        "qwen3-30b-a3b", 48, 2048, 151936, Gqa(32, 4, 128), 0, 0, Moe(128, 8, 768),
        max_context=40960,
    ),
    ModelShape(
        "qwen3-8b", 36, 4096, 151936, Gqa(32, 8, 128), 36, 12288, max_context=40960
    ),
    ModelShape(
        "qwen3-0.6b", 28, 1024, 151936, Gqa(16, 8, 128), 28, 3072, tied=True, max_context=40960
    ),
    ModelShape(
        "gpt-oss-120b", 36, 2880, 201088, Gqa(64, 8, 64), 0, 0, Moe(128, 4, 2880),
        window=128, window_layers=18, precision="mxfp4", max_context=131072,
    ),
    ModelShape(
        "gpt-oss-20b", 24, 2880, 201088, Gqa(64, 8, 64), 0, 0, Moe(32, 4, 2880),
        window=128, window_layers=12, precision="mxfp4", max_context=131072,
    ),
    ModelShape(
        "mixtral-8x7b", 32, 4096, 32000, Gqa(32, 8, 128), 0, 0, Moe(8, 2, 14336),
        max_context=32768,
    ),
    ModelShape(
        "llama-3.3-70b", 80, 8192, 128256, Gqa(64, 8, 128), 80, 28672, max_context=131072
    ),
    ModelShape(
        "llama-3.1-8b", 32, 4096, 128256, Gqa(32, 8, 128), 32, 14336, max_context=131072
    ),
    ModelShape(
        "gemma-3-27b", 62, 5376, 262208, Gqa(32, 16, 128), 62, 21504,
        window=1024, window_layers=52, tied=True, max_context=131072,
    ),
)  # fmt: skip


def shape_named(name: str) -> ModelShape | None:
    """A shape of the table; None where there is none of that name."""
    for shape in SHAPES:
        if shape.name == name.lower():
            return shape
    return None
