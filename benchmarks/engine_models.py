"""The random networks that engine.py measures, with a vocabulary of 16k. Knows no engine.

qwen3 is dense, of 0.05B parameters; qwen3moe has 8 layers of 32 experts, of which a token takes 4:
0.17B. The vocabulary is small so that the last product does not hide what engines differ in; head
and embedding are two tensors. Needs transformers.
"""

from __future__ import annotations

import json
from pathlib import Path

__all__ = ("NETWORKS", "VOCABULARY", "model_folder")

VOCABULARY = 16384
COMMON = {
    "hidden_size": 512,
    "intermediate_size": 1536,
    "num_attention_heads": 8,
    "head_dim": 64,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 8192,
    "tie_word_embeddings": False,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 0,
}
NETWORKS = {
    "qwen3": ("Qwen3", {"num_hidden_layers": 12, "num_key_value_heads": 4}),
    "qwen3moe": (
        "Qwen3Moe",
        {
            "num_hidden_layers": 8,
            "num_key_value_heads": 2,
            "moe_intermediate_size": 384,
            "num_experts": 32,
            "num_experts_per_tok": 4,
            "norm_topk_prob": True,
        },
    ),
}
"""Name -> transformers' name, and what differs from COMMON."""


def model_folder(root: Path, dtype: str, network: str) -> Path:
    """A checkpoint of Hugging Face's kind below `root`, made where it is not there yet.

    The same weights in either dtype, rounded. Raises ImportError without transformers.
    """
    folder = root / f"{network}-v16k-{dtype}"
    if (folder / "config.json").is_file():
        return folder
    import torch
    import transformers

    torch.manual_seed(0)
    kind, differs = NETWORKS[network]
    rope = {"rope_type": "default", "rope_theta": 1e6}
    config = getattr(transformers, f"{kind}Config")(**COMMON, **differs, rope_parameters=rope)
    made = getattr(transformers, f"{kind}ForCausalLM")(config).to(getattr(torch, dtype))
    draft = folder.with_name(f"{folder.name}.draft")
    made.save_pretrained(draft)
    _tell_older_readers(draft / "config.json")
    draft.rename(folder)
    return folder


def _tell_older_readers(path: Path) -> None:
    """Older versions of transformers look for the rotation's base in another place, and for the
    number of experts under another name."""
    config = json.loads(path.read_text(encoding="utf-8"))
    config.setdefault("rope_theta", 1e6)
    if "num_local_experts" in config:
        config.setdefault("num_experts", config["num_local_experts"])
    path.write_text(json.dumps(config, indent=1), encoding="utf-8")
