"""A GGUF's metadata as the config.json of the same model. Knows no tensor's values and no torch.

Keys: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import log

from tokenwire.core.errors import ConfigError

__all__ = ("ARCHITECTURES", "config_fields", "end_ids")

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
ENDS = ("eos", "eot", "eom")
"""End of text, of a turn, of a message: after each a model has said what it had to say."""


def config_fields(
    fields: Mapping[str, object], tensors: Collection[str], where: str
) -> dict[str, object]:
    """What config.json would say, but for vocab_size. `tensors`: the names of those in the file.

    Raises ConfigError, which begins with `where`, for an architecture that is not in ARCHITECTURES.
    """
    architecture = fields.get("general.architecture")
    if architecture not in ARCHITECTURES:
        raise ConfigError(
            f"{where}: general.architecture: wanted one of {', '.join(ARCHITECTURES)}, "
            f"got {architecture!r}: such a model cannot be run here"
        )
    name = str(architecture)
    found: dict[str, object] = {
        "architectures": [ARCHITECTURES[name]],
        "model_type": name,
        "tie_word_embeddings": "output.weight" not in tensors,
        "dtype": "bfloat16",
        **_sizes(fields, name, where),
    }
    ends = end_ids(fields)
    if ends:
        found["eos_token_id"] = ends[0] if len(ends) == 1 else ends
    scaling = _scaling(fields, name)
    if scaling:
        found["rope_scaling"] = scaling
    if name == "gemma3":
        found |= _gemma(found)
    elif name != "llama":
        found.pop("sliding_window", None)
    elif "sliding_window" in found:
        found |= {"architectures": ["MistralForCausalLM"], "model_type": "mistral"}
    if name != "gemma3":
        found["hidden_act"] = "silu"
    found["attention_bias"] = "blk.0.attn_q.bias" in tensors
    return found


def end_ids(fields: Mapping[str, object]) -> list[int]:
    """Of the tokens that end an answer, as far as the file names them."""
    ids = [fields.get(f"tokenizer.ggml.{name}_token_id") for name in ENDS]
    return list(dict.fromkeys(id for id in ids if isinstance(id, int)))


def _sizes(fields: Mapping[str, object], architecture: str, where: str) -> dict[str, object]:
    found: dict[str, object] = {}
    for ours, theirs in SIZES.items():
        value = fields.get(f"{architecture}.{theirs}")
        if value is not None:
            found[ours] = value
        elif ours in NEEDED:
            raise ConfigError(f"{where}: wanted the key {architecture}.{theirs}, it is not there")
    hidden, heads = found["hidden_size"], found["num_attention_heads"]
    found.setdefault("num_key_value_heads", heads)
    dim = fields.get(f"{architecture}.rope.dimension_count")
    if isinstance(dim, int):
        found.setdefault("head_dim", dim)
    elif isinstance(hidden, int) and isinstance(heads, int) and heads > 0:
        found.setdefault("head_dim", hidden // heads)
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
    own, factor = found.get("attention_factor"), found.get("factor")
    if kind == "yarn" and isinstance(own, float) and isinstance(factor, float):
        # Why: readers of this format multiply it into yarn's own; in config.json it replaces it.
        found["attention_factor"] = own * (1.0 + 0.1 * log(max(1.0, factor)))
    return found


def _gemma(found: Mapping[str, object]) -> dict[str, object]:
    """What the format leaves to the reader."""
    hidden, heads = found["hidden_size"], found["num_attention_heads"]
    scalar = found.get("head_dim", 256)
    if found["num_hidden_layers"] == LARGEST_GEMMA and isinstance(hidden, int):
        assert isinstance(heads, int)
        scalar = hidden // heads
    theta = found.get("rope_theta", 1_000_000.0)
    return {
        "model_type": "gemma3_text",
        "query_pre_attn_scalar": scalar,
        "rope_theta": theta,
    }
