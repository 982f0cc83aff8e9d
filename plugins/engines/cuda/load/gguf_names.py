"""Names of a GGUF's tensors as names in a Hugging Face checkpoint. Knows no tensor's values."""

from __future__ import annotations

from collections.abc import Collection

__all__ = ("tensor_names",)

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
