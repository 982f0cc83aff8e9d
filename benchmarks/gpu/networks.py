"""The networks that the check runs, with random weights: sizes of published ones, and tiny ones."""

from __future__ import annotations

from typing import Any

import torch
from msgspec.structs import replace

from tokenwire.plugins.engines.cuda.build import choose_ops
from tokenwire.plugins.engines.cuda.load import Loaded
from tokenwire.plugins.engines.cuda.models.causal import CausalModel
from tokenwire.plugins.engines.cuda.models.config import Mixture, Mla, ModelConfig, Rope
from tokenwire.plugins.engines.cuda.preflight import look
from tokenwire.plugins.engines.cuda.settings import CudaSettings

__all__ = (
    "DEEPSEEK_V2_LITE",
    "QWEN3_06B",
    "QWEN3_30B",
    "SMOLLM2",
    "TINY",
    "TINY_MLA",
    "TINY_MOE",
    "random_model",
)

TINY_HIDDEN = 64
TINY = ModelConfig(
    family="qwen3",
    hidden=TINY_HIDDEN,
    intermediate=96,
    layers=2,
    heads=4,
    kv_heads=2,
    head_dim=16,
    vocab_size=512,
    context_length=512,
    rms_eps=1e-6,
    ropes=(Rope(16, 1e6),),
    rope_of_layer=(0, 0),
    windows=(0, 0),
    attention_scale=16**-0.5,
    tie=True,
    qk_norm=True,
    dtype="float32",
)
TINY_MOE = replace(
    TINY,
    family="qwen3_moe",
    mixture=Mixture(experts=8, top_k=2, intermediate=32, layers=(0, 1)),
)
TINY_MLA = replace(
    TINY,
    family="deepseek_v2",
    kv_heads=1,
    head_dim=32,
    attention_scale=32**-0.5,
    qk_norm=False,
    mixture=Mixture(experts=8, top_k=2, intermediate=32, layers=(1,), renormalise=False, shared=32),
    mla=Mla(q_rank=0, kv_rank=64, nope_dim=16, rope_dim=16, value_dim=32, interleaved=False),
)


def _of_layers(config: ModelConfig, layers: int, **differs: Any) -> ModelConfig:
    every = {"rope_of_layer": (0,) * layers, "windows": (0,) * layers}
    return replace(config, layers=layers, context_length=8192, dtype="bfloat16", **every, **differs)


QWEN3_06B = _of_layers(
    TINY,
    28,
    hidden=1024,
    intermediate=3072,
    heads=16,
    kv_heads=8,
    head_dim=128,
    vocab_size=151_936,
    ropes=(Rope(128, 1e6),),
    attention_scale=128**-0.5,
)
SMOLLM2 = _of_layers(
    TINY,
    30,
    family="llama",
    hidden=576,
    intermediate=1536,
    heads=9,
    kv_heads=3,
    head_dim=64,
    vocab_size=49_152,
    ropes=(Rope(64, 1e5),),
    attention_scale=64**-0.5,
    qk_norm=False,
)
QWEN3_30B = _of_layers(
    QWEN3_06B,
    48,
    family="qwen3_moe",
    hidden=2048,
    intermediate=6144,
    heads=32,
    kv_heads=4,
    tie=False,
    mixture=Mixture(experts=128, top_k=8, intermediate=768, layers=tuple(range(48))),
)
"""Qwen3-30B-A3B's: 61 GB in bfloat16."""
DEEPSEEK_V2_LITE = _of_layers(
    TINY_MLA,
    27,
    hidden=2048,
    intermediate=10_944,
    heads=16,
    head_dim=192,
    vocab_size=102_400,
    ropes=(Rope(64, 1e4),),
    attention_scale=192**-0.5,
    tie=False,
    mixture=Mixture(
        experts=64,
        top_k=6,
        intermediate=1408,
        layers=tuple(range(1, 27)),
        renormalise=False,
        shared=2816,
    ),
    mla=Mla(q_rank=0, kv_rank=512, nope_dim=128, rope_dim=64, value_dim=128, interleaved=False),
)
"""31 GB in bfloat16."""


def random_model(
    config: ModelConfig, device: str, *, lie: dict[str, Any] | None = None, **settings: Any
) -> Loaded:
    """Weights of a normal distribution, the same ones every time. `lie`: of CausalModel, how it
    lies over ranks."""
    dtype = getattr(torch, config.dtype)
    chosen = CudaSettings(**settings)
    ops = choose_ops(chosen, config, device, dtype, look(device))
    is_steady = chosen.objective == "determinism"
    model = CausalModel(
        config, ops, device=device, dtype=dtype, **{"is_steady": is_steady, **(lie or {})}
    )
    generator = torch.Generator(device).manual_seed(0)
    scale = 0.3 if config.hidden == TINY_HIDDEN else 0.02
    for name, place in model.places.items():
        if name.endswith("norm.weight"):
            place.fill_(1.0)
        else:
            place.normal_(std=scale, generator=generator)
    return Loaded(model, config, model.weight_bytes, 0.0)
