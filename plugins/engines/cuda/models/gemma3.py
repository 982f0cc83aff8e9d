"""Gemma 3's text model: windows in most layers, two ropes, four norms a block. Knows no torch."""

from __future__ import annotations

from tokenwire.core.errors import ConfigError
from tokenwire.plugins.engines.cuda.models.common import layer_windows, read_rope, sizes
from tokenwire.plugins.engines.cuda.models.config import ModelConfig, Rope
from tokenwire.plugins.engines.cuda.models.document import Document
from tokenwire.plugins.engines.cuda.models.family import Family

__all__ = ("GEMMA3",)

DEFAULTS: dict[str, object] = {
    "head_dim": 256,
    "hidden_activation": "gelu_pytorch_tanh",
    "hidden_size": 2304,
    "intermediate_size": 9216,
    "max_position_embeddings": 131_072,
    "num_attention_heads": 8,
    "num_hidden_layers": 26,
    "num_key_value_heads": 4,
    "query_pre_attn_scalar": 256,
    "rms_norm_eps": 1e-6,
    "sliding_window": 4096,
    "tie_word_embeddings": True,
    "vocab_size": 262_208,
}
"""Checkpoints of this family leave out what equals transformers' defaults (Gemma3TextConfig)."""


def read(document: Document) -> ModelConfig:
    text = _text(document)
    if text.get("use_bidirectional_attention", bool, False):
        raise ConfigError(f"{text.where}: use_bidirectional_attention: this engine has no such")
    found = sizes(text)
    hidden, layers, head_dim = found["hidden"], found["layers"], found["head_dim"]
    window = text.need("sliding_window", int)
    windows = layer_windows(text, layers, window)
    if windows is None:
        pattern = text.get("sliding_window_pattern", int, 6)
        windows = tuple(0 if (layer + 1) % pattern == 0 else window for layer in range(layers))
    found["windows"] = windows
    found["ropes"] = (
        read_rope(text, head_dim, layer_type="full_attention", theta=1_000_000.0),
        _local_rope(text, head_dim),
    )
    found["rope_of_layer"] = tuple(int(each != 0) for each in windows)
    found["attention_scale"] = text.need("query_pre_attn_scalar", float) ** -0.5
    bias = text.get("attention_bias", bool, False)
    return ModelConfig(
        family="gemma3",
        **found,
        qkv_bias=bias,
        output_bias=bias,
        qk_norm=True,
        post_norms=True,
        norm_offset=1.0,
        embed_scale=hidden**0.5,
        attention_softcap=text.get("attn_logit_softcapping", float, 0.0),
        logit_softcap=text.get("final_logit_softcapping", float, 0.0),
    )


def _text(document: Document) -> Document:
    """The text model's part of a multimodal checkpoint's config, or all of a text model's."""
    inner = document.inner("text_config")
    outer = {
        name: document.fields[name]
        for name in ("dtype", "torch_dtype", "eos_token_id", "quantization_config")
        if document.has(name)
    }
    source = document if inner is None else inner
    given = {name: value for name, value in source.fields.items() if value is not None}
    return Document({**DEFAULTS, **outer, **given}, source.where)


def _local_rope(text: Document, head_dim: int) -> Rope:
    if text.has("rope_parameters"):
        return read_rope(text, head_dim, layer_type="sliding_attention")
    # Why no scaling: it stretches the layers with full attention alone.
    return Rope(head_dim, text.get("rope_local_base_freq", float, 10_000.0))


GEMMA3 = Family(
    "gemma3",
    ("Gemma3ForCausalLM", "Gemma3TextModel", "Gemma3ForConditionalGeneration"),
    read,
)
