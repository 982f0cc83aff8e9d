"""Tensor names of checkpoints, brought to one form. Knows no file and no torch."""

from __future__ import annotations

__all__ = ("bert_name", "checkpoint_name")

OTHERS = (
    "vision_tower.",
    "multi_modal_projector.",
    "model.vision_tower.",
    "model.multi_modal_projector.",
)
INNER = {
    "model.language_model.": "model.",
    "language_model.model.": "model.",
    "language_model.lm_head.": "lm_head.",
}
MIXTRAL = {
    ".block_sparse_moe.": ".mlp.",
    ".w1.": ".gate_proj.",
    ".w2.": ".down_proj.",
    ".w3.": ".up_proj.",
}
ROUTER = ".mlp.router."
BARE = ("embed_tokens.", "layers.", "norm.")


def checkpoint_name(key: str) -> str | None:
    """As a causal model's own checkpoint would name it; None: it is of no use to the text model.

    Checkpoints of multimodal models keep the text model one level down, those of embedding models
    leave out the "model." before their names, old ones keep rope's frequencies, and Mixtral's and
    gpt-oss's have names of their own for what others call experts and gate.
    """
    if key.startswith(OTHERS) or key.endswith("rotary_emb.inv_freq"):
        return None
    if ".block_sparse_moe." in key:
        for theirs, ours in MIXTRAL.items():
            key = key.replace(theirs, ours)
    key = key.replace(ROUTER, ".mlp.gate.")
    for prefix, ours in INNER.items():
        if key.startswith(prefix):
            return ours + key.removeprefix(prefix)
    return f"model.{key}" if key.startswith(BARE) else key


def bert_name(key: str) -> str | None:
    """As the bare encoder's checkpoint would name it; None: heads, and constants of old ones."""
    key = key.removeprefix("bert.")
    if key.startswith(("cls.", "pooler.", "classifier.")) or key.endswith(".position_ids"):
        return None
    return key
