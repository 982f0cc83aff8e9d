"""The random Qwen3 that engine.py measures: 0.05B parameters, a vocabulary of 16k. Knows no engine.

The vocabulary is small so that the last product does not hide what engines differ in; head and
embedding are two tensors. Needs transformers.
"""

from __future__ import annotations

import json
from pathlib import Path

__all__ = ("VOCABULARY", "model_folder")

VOCABULARY = 16384
SHAPE = {
    "hidden_size": 512,
    "intermediate_size": 1536,
    "num_hidden_layers": 12,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 64,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 8192,
    "tie_word_embeddings": False,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 0,
}


def model_folder(root: Path, dtype: str) -> Path:
    """A checkpoint of Hugging Face's kind below `root`, made where it is not there yet.

    The same weights in either dtype, rounded. Raises ImportError without transformers.
    """
    folder = root / f"qwen3-v16k-{dtype}"
    if (folder / "config.json").is_file():
        return folder
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(0)
    config = Qwen3Config(**SHAPE, rope_parameters={"rope_type": "default", "rope_theta": 1e6})
    network = Qwen3ForCausalLM(config).to(getattr(torch, dtype))
    draft = folder.with_name(f"{folder.name}.draft")
    network.save_pretrained(draft)
    _tell_older_readers(draft / "config.json")
    draft.rename(folder)
    return folder


def _tell_older_readers(path: Path) -> None:
    """Older versions of transformers look for the rotation's base in another place."""
    config = json.loads(path.read_text(encoding="utf-8"))
    config.setdefault("rope_theta", 1e6)
    path.write_text(json.dumps(config, indent=1), encoding="utf-8")
