"""What the families' configurations have in common: sizes, rope, windows. Knows no torch."""

from __future__ import annotations

import math
from typing import Any, Literal

from tokenwire.core.errors import ConfigError
from tokenwire.plugins.engines.cuda.models.config import (
    Activation,
    Mixture,
    Quantisation,
    Rope,
)
from tokenwire.plugins.engines.cuda.models.document import Document

__all__ = ("layer_windows", "mixture", "quantisation", "read_rope", "sizes")

QuantisationMethod = Literal["fp8", "mxfp4"]
MXFP4_BLOCK = (1, 32)
EXPERT_COUNTS = ("num_experts", "num_local_experts", "n_routed_experts")
FULL, SLIDING = "full_attention", "sliding_attention"
ACTIVATIONS: dict[str, Activation] = {
    "silu": "silu",
    "swish": "silu",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_new": "gelu_tanh",
}


def sizes(document: Document, method: QuantisationMethod = "fp8") -> dict[str, Any]:
    """The arguments of ModelConfig that every family names alike, `ropes` and `windows` (full)
    among them. `method`: how weights of this family may be quantised."""
    hidden = document.size("hidden_size")
    heads = document.size("num_attention_heads")
    head_dim = document.size("head_dim", hidden // heads)
    layers = document.size("num_hidden_layers")
    return {
        "hidden": hidden,
        "intermediate": document.size("intermediate_size"),
        "layers": layers,
        "heads": heads,
        "kv_heads": document.size("num_key_value_heads", heads),
        "head_dim": head_dim,
        "vocab_size": document.size("vocab_size"),
        "context_length": document.size("max_position_embeddings"),
        "rms_eps": document.get("rms_norm_eps", float, 1e-6),
        "ropes": (read_rope(document, head_dim),),
        "rope_of_layer": (0,) * layers,
        "windows": (0,) * layers,
        "attention_scale": head_dim**-0.5,
        "tie": document.get("tie_word_embeddings", bool, False),
        "activation": _activation(document),
        "eos_ids": document.ids("eos_token_id"),
        "dtype": document.get("dtype", str, document.get("torch_dtype", str, "float32")),
        "quantisation": quantisation(document, method),
    }


def _activation(document: Document) -> Activation:
    field = "hidden_activation" if document.has("hidden_activation") else "hidden_act"
    name = document.get(field, str, "silu")
    if name not in ACTIVATIONS:
        raise ConfigError(
            f"{document.where}: {field}: wanted one of {', '.join(ACTIVATIONS)}, got {name!r}"
        )
    return ACTIVATIONS[name]


def read_rope(
    document: Document, head_dim: int, *, layer_type: str | None = None, theta: float = 10_000.0
) -> Rope:
    """The rope of all layers, or of those of `layer_type`: from `rope_parameters` (which has the
    base in it, and may hold an object a layer type), else `rope_scaling` and `rope_theta`."""
    found = document.inner("rope_parameters")
    if found is not None and layer_type is not None and found.has(layer_type):
        found = found.inner(layer_type)
    if found is None:
        found = document.inner("rope_scaling") or Document({}, document.where)
        theta = document.get("rope_theta", float, theta)
    theta = found.get("rope_theta", float, theta)
    context = document.need("max_position_embeddings", int)
    return _rope(found, head_dim, theta, context)


def _rope(found: Document, head_dim: int, theta: float, context: int) -> Rope:
    dim = int(head_dim * found.get("partial_rotary_factor", float, 1.0))
    kind = found.get("rope_type", str, found.get("type", str, "default"))
    original = found.size("original_max_position_embeddings", context)
    match kind:
        case "default":
            return Rope(dim, theta)
        case "linear":
            return Rope(dim, theta, "linear", found.need("factor", float))
        case "dynamic":
            return Rope(dim, theta, "dynamic", found.need("factor", float), context)
        case "llama3":
            return Rope(
                dim,
                theta,
                "llama3",
                found.need("factor", float),
                original,
                low_freq_factor=found.need("low_freq_factor", float),
                high_freq_factor=found.need("high_freq_factor", float),
            )
        case "yarn":
            factor = found.get("factor", float, context / original)
            return Rope(
                dim,
                theta,
                "yarn",
                factor,
                original,
                beta_fast=found.get("beta_fast", float, 32.0) or 32.0,
                beta_slow=found.get("beta_slow", float, 1.0) or 1.0,
                attention_factor=_yarn_attention(found, factor),
                truncate=found.get("truncate", bool, True),
            )
    raise ConfigError(
        f"{found.where}: wanted the rope type default, linear, dynamic, llama3 or yarn, "
        f"got {kind!r}: this engine does not know it"
    )


def _yarn_attention(found: Document, factor: float) -> float:
    """YaRN (arXiv:2309.00071, 3.4): 0.1 ln(s) + 1; DeepSeek's variant has two of them."""
    if found.has("attention_factor"):
        return found.need("attention_factor", float)

    def scale(by: float) -> float:
        return 1.0 if factor <= 1 else 0.1 * by * math.log(factor) + 1.0

    up, down = found.get("mscale", float, 0.0), found.get("mscale_all_dim", float, 0.0)
    return scale(up) / scale(down) if up and down else scale(1.0)


def layer_windows(document: Document, layers: int, window: int) -> tuple[int, ...] | None:
    """From `layer_types`; None where the file has no such field."""
    if not document.has("layer_types"):
        return None
    types = document.need("layer_types", tuple[str, ...])
    unknown = set(types) - {FULL, SLIDING}
    if unknown or len(types) != layers:
        raise ConfigError(
            f"{document.where}: layer_types: wanted {layers} times {FULL!r} or {SLIDING!r}, "
            f"got {list(types)}"
        )
    return tuple(window if each == SLIDING else 0 for each in types)


def mixture(
    document: Document, layers: tuple[int, ...], intermediate: int, *, renormalise: bool
) -> Mixture | None:
    """Of the experts that one of EXPERT_COUNTS and `num_experts_per_tok` count; None where no layer
    has any."""
    count = next((name for name in EXPERT_COUNTS if document.has(name)), EXPERT_COUNTS[0])
    if not layers:
        return None
    experts, top_k = document.need(count, int), document.need("num_experts_per_tok", int)
    if not 1 <= top_k <= experts:
        raise ConfigError(
            f"{document.where}: num_experts_per_tok: wanted 1 to {count} ({experts}), got {top_k}"
        )
    return Mixture(experts, top_k, intermediate, layers, renormalise)


def quantisation(document: Document, known: QuantisationMethod = "fp8") -> Quantisation | None:
    """None: weights are plain. Raises ConfigError for a kind that this engine does not know."""
    found = document.inner("quantization_config")
    if found is None:
        return None
    skipped = found.get("modules_to_not_convert", tuple[str, ...], ())
    method = found.get("quant_method", str, "")
    if known == "mxfp4":
        if method != known:
            raise ConfigError(
                f"{found.where}: wanted no quantisation, or quant_method 'mxfp4'; got {method!r}: "
                "take a checkpoint that is not quantised, or so quantised"
            )
        return Quantisation(MXFP4_BLOCK, skipped, known)
    block = found.get("weight_block_size", tuple[int, ...], ())
    if method != "fp8" or len(block) != 2:
        raise ConfigError(
            f"{found.where}: wanted no quantisation, or quant_method 'fp8' with a "
            f"weight_block_size of two numbers; got {method!r} with {list(block)}: "
            "take a checkpoint that is not quantised, or so quantised"
        )
    return Quantisation((block[0], block[1]), skipped)
