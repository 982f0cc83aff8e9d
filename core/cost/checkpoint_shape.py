"""A Hugging Face config.json, read, becomes a shape. Opens no file; knows families by `model_type`.

A family that is not known is refused: a guess would give figures of another model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias, cast, final

from tokenwire.core.cost.shape import Attention, Gqa, Mla, ModelShape, Moe, Precision
from tokenwire.core.errors import ConfigError

__all__ = ("FAMILIES", "shape_of_config")

Config: TypeAlias = Mapping[str, object]

DENSE: Final = ("llama", "mistral", "qwen2", "qwen3", "gemma2", "gemma3", "gemma3_text")
MIXTURES: Final = ("mixtral", "qwen3_moe", "deepseek_v2", "deepseek_v3", "kimi_k2", "gpt_oss")
FAMILIES: Final = (*DENSE, *MIXTURES)
TIED: Final = ("gemma2", "gemma3", "gemma3_text")
"""Families whose head is the embedding unless a config says otherwise."""
EVERY_OTHER: Final = ("gemma2", "gpt_oss")
"""Families in which every other layer has the window."""


def shape_of_config(config: Config, name: str = "") -> ModelShape:
    """Raises ConfigError: an unknown family, a missing key, a number that is none."""
    inner = config.get("text_config")
    read = _Reader(cast("Config", inner) if isinstance(inner, Mapping) else config, name)
    family = str(read.config.get("model_type") or config.get("model_type"))
    if family not in FAMILIES:
        raise ConfigError(
            f"{read.where}: model_type '{family}' has no cost model; known are "
            f"{', '.join(FAMILIES)}"
        )
    layers = read.size("num_hidden_layers")
    dense = _dense_layers(read, family, layers)
    window = read.count("sliding_window")
    windowed = _windowed(read, family, layers) if window else 0
    tied = read.config.get("tie_word_embeddings", config.get("tie_word_embeddings"))
    return ModelShape(
        name=name or family,
        layers=layers,
        hidden=read.size("hidden_size"),
        vocabulary=read.size("vocab_size"),
        attention=_attention(read),
        dense_layers=dense,
        dense_width=read.size("intermediate_size") if dense else 0,
        moe=_moe(read, family) if dense < layers else None,
        window=window if windowed else 0,
        window_layers=windowed,
        tied=bool(tied) if tied is not None else family in TIED,
        precision=_precision(read, config),
        max_context=read.count("max_position_embeddings"),
    )


@final
class _Reader:
    """Numbers of a config, or a sentence."""

    def __init__(self, config: Config, name: str) -> None:
        self.config = config
        self.where = f"{name}: config.json" if name else "config.json"

    def size(self, *keys: str) -> int:
        """The first of these keys that is there; from 1."""
        for key in keys:
            if self.config.get(key) is not None:
                return self._number(key, least=1)
        raise ConfigError(
            f"{self.where}: lacks {' or '.join(keys)}; a config that leaves defaults out cannot be "
            "planned with: write the number in"
        )

    def count(self, key: str, default: int = 0) -> int:
        """From 0; the default where it is absent or null."""
        return default if self.config.get(key) is None else self._number(key, least=0)

    def _number(self, key: str, *, least: int) -> int:
        value = self.config[key]
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise ConfigError(
                f"{self.where}: {key}: wanted a whole number from {least}, got {value}"
            )
        return value


def _attention(read: _Reader) -> Attention:
    heads = read.size("num_attention_heads")
    if read.config.get("kv_lora_rank") is not None:
        return Mla(
            heads,
            latent=read.size("kv_lora_rank"),
            rope=read.size("qk_rope_head_dim"),
            nope=read.size("qk_nope_head_dim"),
            value=read.size("v_head_dim"),
            query_latent=read.count("q_lora_rank"),
        )
    kept = read.count("num_key_value_heads", heads)
    if kept < 1 or heads % kept:
        raise ConfigError(f"{read.where}: {heads} heads cannot share {kept} KV heads evenly")
    return Gqa(heads, kept, read.count("head_dim") or read.size("hidden_size") // heads)


def _dense_layers(read: _Reader, family: str, layers: int) -> int:
    """How many layers have no experts."""
    if family in DENSE:
        return layers
    if family == "qwen3_moe":
        step = read.count("decoder_sparse_step", 1) or 1
        given = read.config.get("mlp_only_layers")
        only = cast("list[object]", given) if isinstance(given, list) else []
        return sum(each in only or (each + 1) % step != 0 for each in range(layers))
    if family in ("deepseek_v2", "deepseek_v3", "kimi_k2"):
        first, every = read.count("first_k_dense_replace"), read.count("moe_layer_freq", 1) or 1
        return sum(each < first or each % every != 0 for each in range(layers))
    return 0


def _moe(read: _Reader, family: str) -> Moe:
    experts = read.size("num_local_experts", "n_routed_experts", "num_experts")
    top_k = read.size("num_experts_per_tok", "experts_per_token")
    if top_k > experts:
        raise ConfigError(f"{read.where}: a token cannot pick {top_k} of {experts} experts")
    if family in ("mixtral", "gpt_oss"):
        return Moe(experts, top_k, read.size("intermediate_size"))
    width = read.size("moe_intermediate_size")
    return Moe(experts, top_k, width, read.count("n_shared_experts") * width)


def _windowed(read: _Reader, family: str, layers: int) -> int:
    """How many layers see the window alone."""
    kinds = read.config.get("layer_types")
    if isinstance(kinds, list):
        return cast("list[object]", kinds).count("sliding_attention")
    if family.startswith("gemma3"):
        every = read.count("sliding_window_pattern", 6) or 6
        return layers - layers // every
    if family in EVERY_OTHER:
        return (layers + 1) // 2
    if family.startswith("qwen"):
        used = bool(read.config.get("use_sliding_window"))
        return max(0, layers - read.count("max_window_layers", layers)) if used else 0
    return layers


def _precision(read: _Reader, config: Config) -> Precision:
    """As the weights are published."""
    found = read.config.get("quantization_config", config.get("quantization_config"))
    if not isinstance(found, Mapping):
        return "bf16"
    method = cast("Config", found).get("quant_method")
    if method == "fp8":
        return "fp8"
    if method == "mxfp4":
        return "mxfp4"
    raise ConfigError(
        f"{read.where}: quant_method '{method}' has no cost model; known are fp8 and mxfp4"
    )
