"""gpt-oss: a sink in every head, a window in every other layer, experts with biases and a clamped
gate, weights of four bits. Knows no torch."""

from __future__ import annotations

from msgspec.structs import replace

from tokenwire.plugins.engines.cuda.models.common import layer_windows, mixture, read_rope, sizes
from tokenwire.plugins.engines.cuda.models.config import Mixture, ModelConfig
from tokenwire.plugins.engines.cuda.models.document import Document
from tokenwire.plugins.engines.cuda.models.family import Family

__all__ = ("GPT_OSS",)


def read(document: Document) -> ModelConfig:
    found = sizes(document, "mxfp4")
    layers, window = found["layers"], document.size("sliding_window", 128)
    windows = layer_windows(document, layers, window)
    if windows is None:
        windows = tuple(0 if layer % 2 else window for layer in range(layers))
    found["windows"] = windows
    found["ropes"] = (read_rope(document, found["head_dim"], theta=150_000.0),)
    found["activation"] = "swiglu_clamped"
    bias = document.get("attention_bias", bool, True)
    return ModelConfig(
        family="gpt_oss",
        **found,
        qkv_bias=bias,
        output_bias=bias,
        sinks=True,
        gate_alpha=document.get("swiglu_alpha", float, 1.702),
        gate_limit=document.get("swiglu_limit", float, 7.0),
        mixture=_mixture(document, layers, found["intermediate"]),
    )


def _mixture(document: Document, layers: int, intermediate: int) -> Mixture | None:
    found = mixture(document, tuple(range(layers)), intermediate, renormalise=True)
    if found is None:
        return None
    return replace(found, router_bias=True, expert_bias=True, stacked=True)


GPT_OSS = Family("gpt_oss", ("GptOssForCausalLM", "GptOssModel"), read)
