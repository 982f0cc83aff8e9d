"""A network cut over the slices of a part says what it says whole, on every slice in the same bits,
and each slice has and reads its own part of the weights."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from safetensors.torch import load_file, save_file  # noqa: E402

from tests.plugins.engines.cuda.load.checkpoints import SIZES, tiny  # noqa: E402
from tests.plugins.engines.cuda.parallel.ranks import run_ranks  # noqa: E402
from tests.plugins.engines.cuda.parallel.sliced import (  # noqa: E402
    Told,
    alone,
    ask,
    settled_logits,
)
from tokenwire.core.cost.layout import Layout  # noqa: E402
from tokenwire.core.errors import ConfigError  # noqa: E402
from tokenwire.plugins.engines.cuda.parallel.mesh import SOLE  # noqa: E402

pytestmark = pytest.mark.torch

CLOSE = 1e-5
MOE = {
    "num_experts": 6,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 24,
    "norm_topk_prob": True,
    "head_dim": 8,
}
GEMMA = {
    "head_dim": 8,
    "sliding_window": 6,
    "query_pre_attn_scalar": 24,
    "tie_word_embeddings": True,
    "initializer_range": 0.15,
    "layer_types": ["sliding_attention", "full_attention"],
    "attn_logit_softcapping": 4.0,
    "final_logit_softcapping": 3.0,
}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("Llama", {}),
    "llama, biased": ("Llama", {"attention_bias": True, "mlp_bias": True}),
    "llama, multi-query, 97 words": ("Llama", {"num_key_value_heads": 1, "vocab_size": 97}),
    "llama, tied, 97 words": ("Llama", {"tie_word_embeddings": True, "vocab_size": 97}),
    "qwen2": ("Qwen2", {}),
    "qwen3": ("Qwen3", {"head_dim": 16}),
    "gemma3": ("Gemma3", GEMMA),
    "qwen3 moe": ("Qwen3Moe", {**MOE, "mlp_only_layers": [1]}),
    "mixtral": ("Mixtral", {"num_local_experts": 4, "num_experts_per_tok": 2}),
}


def agrees(found: list[Told], wanted: Told) -> None:
    for each in found:
        assert torch.equal(each.logits, found[0].logits)
        assert each.ids == wanted.ids
    apart = (found[0].logits - wanted.logits).abs().max() / wanted.logits.abs().max()
    assert float(apart) < CLOSE


def is_cut(name: str) -> bool:
    return name.endswith("proj.weight") or name == "lm_head.weight"


def divides(found: list[Told], wanted: Told, kv_heads: int) -> None:
    """Every linear layer, and those alone; what is read is what is held."""
    slices = len(found)
    for name, size in wanted.sizes.items():
        held = [each.sizes.get(name, 0) for each in found]
        row = size // wanted.shapes[name][0]
        if name == "lm_head.weight":
            assert sum(held) == size
            assert max(held) == -(-wanted.shapes[name][0] // slices) * row
        elif is_cut(name):
            ways = min(slices, kv_heads) if "k_proj" in name or "v_proj" in name else slices
            assert held == [size // ways] * slices
        elif name.endswith("proj.bias"):
            assert sum(held) in (size, size * slices // min(slices, kv_heads))
        else:
            assert held == [size] * slices
    for each in found:
        assert each.read == sum(each.sizes.values()) == each.bytes
        assert set(each.sizes) | each.elsewhere == set(wanted.sizes)


@pytest.mark.parametrize("layout", ["TP_2", "TP_4"])
@pytest.mark.parametrize("case", CASES)
def test_slices_say_what_the_whole_says(case, layout, tmp_path) -> None:
    kind, changes = CASES[case]
    tiny(tmp_path, kind, **changes)
    wanted = alone(str(tmp_path))
    found = run_ranks(layout, ask, str(tmp_path))
    agrees(found, wanted)
    assert len(set(wanted.ids[0])) > 1
    divides(found, wanted, changes.get("num_key_value_heads", SIZES["num_key_value_heads"]))
