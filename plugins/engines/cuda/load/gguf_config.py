"""A GGUF's metadata as the config.json of the same model. Knows no tensor's values and no torch.

Keys: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tokenwire.core.errors import ConfigError

__all__ = ("ARCHITECTURES", "config_fields", "tensor_names")

ARCHITECTURES = {
    "llama": "LlamaForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "gemma3": "Gemma3ForCausalLM",
}
"""general.architecture -> the class that reads it. Mistral's files call themselves llama."""

LARGEST_GEMMA = 62
"""Layers of the one Gemma 3 whose attention is not scaled by the head's size."""

SIZES = {
    "hidden_size": "embedding_length",
    "intermediate_size": "feed_forward_length",
    "num_hidden_layers": "block_count",
    "num_attention_heads": "attention.head_count",
    "num_key_value_heads": "attention.head_count_kv",
    "head_dim": "attention.key_length",
    "max_position_embeddings": "context_length",
    "rms_norm_eps": "attention.layer_norm_rms_epsilon",
    "rope_theta": "rope.freq_base",
    "final_logit_softcapping": "final_logit_softcapping",
    "attn_logit_softcapping": "attn_logit_softcapping",
    "sliding_window": "attention.sliding_window",
}
NEEDED = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")


def config_fields(
    fields: Mapping[str, object], tensors: Collection[str], where: str
) -> dict[str, object]:
    """What config.json would say. `tensors`: the names of those in the file.

    Raises ConfigError for an architecture that is not in ARCHITECTURES.
    """
    architecture = fields.get("general.architecture")
    if architecture not in ARCHITECTURES:
        raise ConfigError(
            f"{where}: general.architecture: wanted one of {', '.join(ARCHITECTURES)}, "
            f"got {architecture!r}: this engine cannot run it"
        )
    found: dict[str, object] = {
        "architectures": [ARCHITECTURES[str(architecture)]],
        "tie_word_embeddings": "output.weight" not in tensors,
        "dtype": "bfloat16",
    }
    for ours, theirs in SIZES.items():
        value = fields.get(f"{architecture}.{theirs}")
        if value is not None:
            found[ours] = value
        elif ours in NEEDED:
            raise ConfigError(f"{where}: wanted the key {architecture}.{theirs}, it is not there")
    dim = fields.get(f"{architecture}.rope.dimension_count")
    if "head_dim" not in found and isinstance(dim, int):
        found["head_dim"] = dim
    eos = fields.get("tokenizer.ggml.eos_token_id")
    if isinstance(eos, int):
        found["eos_token_id"] = eos
    scaling = _scaling(fields, str(architecture))
    if scaling:
        found["rope_scaling"] = scaling
    if architecture == "gemma3":
        found |= _gemma(found)
    elif architecture != "llama":
        found.pop("sliding_window", None)
    elif "sliding_window" in found:
        found["architectures"] = ["MistralForCausalLM"]
    found["attention_bias"] = "blk.0.attn_q.bias" in tensors
    return found


def _scaling(fields: Mapping[str, object], architecture: str) -> dict[str, object]:
    kind = fields.get(f"{architecture}.rope.scaling.type")
    if kind in (None, "none"):
        return {}
    found: dict[str, object] = {"rope_type": kind}
    names = {
        "factor": "factor",
        "original_max_position_embeddings": "original_context_length",
        "attention_factor": "attn_factor",
    }
    for ours, theirs in names.items():
        value = fields.get(f"{architecture}.rope.scaling.{theirs}")
        if value is not None:
            found[ours] = value
    return found


def _gemma(found: Mapping[str, object]) -> dict[str, object]:
    """What the format leaves to the reader."""
    hidden, heads = found["hidden_size"], found["num_attention_heads"]
    scalar = found.get("head_dim", 256)
    if found["num_hidden_layers"] == LARGEST_GEMMA and isinstance(hidden, int):
        assert isinstance(heads, int)
        scalar = hidden // heads
    theta = found.get("rope_theta", 1_000_000.0)
    return {"query_pre_attn_scalar": scalar, "rope_theta": theta}


WHOLE = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
MODULES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "ffn_norm": "post_attention_layernorm",
}
GEMMA = {
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}


def tensor_names(architecture: str, tensors: Collection[str]) -> dict[str, str]:
    """Names in the file -> names in a Hugging Face checkpoint; a name not known here stays."""
    modules = {**MODULES, **(GEMMA if architecture == "gemma3" else {})}
    found: dict[str, str] = {}
    for name in tensors:
        head, _, suffix = name.rpartition(".")
        parts = head.split(".", 2)
        if len(parts) == 3 and parts[0] == "blk" and parts[2] in modules:
            found[name] = f"model.layers.{parts[1]}.{modules[parts[2]]}.{suffix}"
        else:
            found[name] = WHOLE.get(name, name)
    return found
