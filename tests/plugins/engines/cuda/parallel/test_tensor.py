"""A network cut over the slices of a part says what it says whole, on every slice in the same bits,
and each slice has and reads its own part of the weights."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tests.plugins.engines.cuda.load.checkpoints import SIZES, tiny  # noqa: E402
from tests.plugins.engines.cuda.load.test_adapters import SHAPES, adapter  # noqa: E402
from tests.plugins.engines.cuda.load.test_fp8 import quantise  # noqa: E402
from tests.plugins.engines.cuda.models.paged import reference_ops  # noqa: E402
from tests.plugins.engines.cuda.models.test_moe import in_fp8  # noqa: E402
from tests.plugins.engines.cuda.parallel.ranks import run_ranks  # noqa: E402
from tests.plugins.engines.cuda.parallel.sliced import (  # noqa: E402
    Told,
    alone,
    ask,
    settled_logits,
)
from tokenwire.core.cost.layout import Layout  # noqa: E402
from tokenwire.core.errors import ConfigError  # noqa: E402
from tokenwire.plugins.engines.cuda.load import load  # noqa: E402
from tokenwire.plugins.engines.cuda.models.causal import CausalModel  # noqa: E402
from tokenwire.plugins.engines.cuda.parallel.group import (  # noqa: E402
    ALONE,
    ALONE_HOST,
    Group,
    HostGroup,
)
from tokenwire.plugins.engines.cuda.parallel.mesh import SOLE, Mesh  # noqa: E402

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
GEMMA_FILE = {
    "query_pre_attn_scalar": 8,
    "sliding_window": 7,
    "num_hidden_layers": 6,
    "tie_word_embeddings": True,
    "initializer_range": 0.15,
    "rope_parameters": {
        "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
    },
}
LATENT = {
    "num_key_value_heads": 4,
    "q_lora_rank": 16,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4,
    "v_head_dim": 8,
    "n_routed_experts": 6,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 24,
    "n_shared_experts": 2,
    "first_k_dense_replace": 1,
}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("Llama", {}),
    "llama, biased": ("Llama", {"attention_bias": True, "mlp_bias": True}),
    "llama, multi-query, 97 words": ("Llama", {"num_key_value_heads": 1, "vocab_size": 97}),
    "llama, tied, 97 words": ("Llama", {"tie_word_embeddings": True, "vocab_size": 97}),
    "mistral": ("Mistral", {"sliding_window": 7}),
    "qwen2": ("Qwen2", {}),
    "qwen3": ("Qwen3", {"head_dim": 16}),
    "gemma3": ("Gemma3", GEMMA),
    "qwen3 moe": ("Qwen3Moe", {**MOE, "mlp_only_layers": [1]}),
    "gpt-oss": (
        "GptOss",
        {
            "intermediate_size": 24,
            "head_dim": 8,
            "num_local_experts": 6,
            "num_experts_per_tok": 2,
            "sliding_window": 6,
            "rope_parameters": {"rope_type": "default", "rope_theta": 1000.0},
        },
    ),
    "deepseek v2": ("DeepseekV2", {**LATENT, "q_lora_rank": None}),
    "deepseek v3": ("DeepseekV3", {**LATENT, "n_group": 2, "topk_group": 1}),
    "mixtral": ("Mixtral", {"num_local_experts": 4, "num_experts_per_tok": 2}),
}


def agrees(found: list[Told], wanted: Told, close: float = CLOSE) -> None:
    for each in found:
        assert torch.equal(each.hidden, found[0].hidden)
        assert torch.equal(each.logits, found[0].logits)
        assert each.ids == wanted.ids
    apart = (found[0].logits - wanted.logits).abs().max() / wanted.logits.abs().max()
    assert float(apart) < close


def is_cut(name: str) -> bool:
    """What makes a token's latents is whole on each rank, as they are."""
    return name.endswith(("proj.weight", "sinks")) and "q_a_proj" not in name


def divides(found: list[Told], wanted: Told, kv_heads: int) -> None:
    """Every linear layer, and those alone; what is held is read, and no more."""
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
    stacked = any(name.endswith("sinks") for name in wanted.sizes)
    for each in found:
        assert sum(each.sizes.values()) == each.bytes
        # Why twice: rows of gate and up alternate in one tensor, and both are read for each.
        assert each.bytes <= each.read <= each.bytes * (1 + stacked)
        assert set(each.sizes) | each.elsewhere == set(wanted.sizes)


HALVES = ("llama, biased", "llama, tied, 97 words", "gemma3", "qwen3 moe", "deepseek v3")


@pytest.mark.parametrize(
    ("case", "layout"),
    [*((case, "TP_4") for case in CASES), *((case, "TP_2") for case in HALVES)],
)
def test_slices_say_what_the_whole_says(case, layout, tmp_path) -> None:
    kind, changes = CASES[case]
    tiny(tmp_path, kind, **changes)
    wanted = alone(str(tmp_path))
    found = run_ranks(layout, ask, str(tmp_path))
    agrees(found, wanted)
    assert len({id for each in wanted.ids for id in each}) > 3
    divides(found, wanted, changes.get("num_key_value_heads", SIZES["num_key_value_heads"]))


def in_blocks(folder: Path, kind: str, changes: dict[str, Any]) -> None:
    """A checkpoint in fp8, by blocks of 128."""
    sizes = {"hidden_size": 256, "intermediate_size": 512, "initializer_range": 0.1}
    network = tiny(folder, kind, **{**sizes, **changes})
    (in_fp8(folder) if changes.get("num_experts") else quantise(folder, network))


@pytest.mark.parametrize(
    ("kind", "changes", "quantisation", "layout"),
    [
        ("Llama", {"num_key_value_heads": 4, "head_dim": 64}, "fp8", "TP_2"),
        ("Llama", {"head_dim": 32, "intermediate_size": 584}, "none", "TP_4"),
        ("Qwen3Moe", {**MOE, "moe_intermediate_size": 256}, "fp8", "TP_2"),
        ("Qwen3Moe", {**MOE, "moe_intermediate_size": 256}, "none", "TP_4"),
    ],
)
def test_8_bit_weights_are_cut_with_their_scales(
    kind, changes, quantisation, layout, tmp_path
) -> None:
    in_blocks(tmp_path, kind, changes)
    wanted = alone(str(tmp_path), quantisation=quantisation)
    found = run_ranks(layout, ask, str(tmp_path), quantisation)
    agrees(found, wanted)
    for each in found:
        assert ("torch.float8_e4m3fn" in each.kinds) == (quantisation == "fp8")
        if quantisation == "fp8":
            assert each.read == each.bytes
            name = "model.layers.1.mlp.experts.3.down_proj.weight_scale_inv"
            if kind == "Llama":
                name = "model.layers.1.mlp.down_proj.weight_scale_inv"
            rows, columns = wanted.shapes[name]
            assert each.shapes[name] == (rows, columns // 2)
        else:
            assert each.read < wanted.read * 0.8


@pytest.mark.parametrize("layout", ["TP_2", "TP_4"])
def test_adapters_are_cut_as_their_layers_are(layout, tmp_path) -> None:
    tiny(tmp_path / "base")
    folder = str(adapter(tmp_path / "a", SHAPES, r=4, seed=1))
    wanted = alone(str(tmp_path / "base"), adapter=folder)
    agrees(run_ranks(layout, ask, str(tmp_path / "base"), "auto", folder), wanted)
    assert not torch.allclose(wanted.logits, alone(str(tmp_path / "base")).logits)


@pytest.mark.parametrize(
    ("kind", "architecture", "changes"),
    [("Llama", "llama", {}), ("Gemma3", "gemma3", {**GEMMA_FILE, "head_dim": 8})],
)
def test_weights_of_a_gguf_file_are_cut_too(kind, architecture, changes, tmp_path) -> None:
    pytest.importorskip("gguf")
    from tests.plugins.engines.cuda.load.test_gguf import write

    network = tiny(tmp_path / "origin", kind, **changes)
    path = str(write(tmp_path / "model.gguf", network, architecture))
    agrees(run_ranks("TP_4", ask, path), alone(path))


def test_a_real_model_in_three_slices(smollm2: Path) -> None:
    """Nine heads, of which three share one of keys. Sums in other orders are that far apart after
    thirty layers, on one rank too."""
    path = str(smollm2 / "model.gguf")
    wanted = alone(path)
    found = run_ranks("TP_3", ask, path)
    agrees(found, wanted, close=3e-4)
    embedding = wanted.sizes["model.embed_tokens.weight"]
    for each in found:
        assert each.bytes - embedding < (wanted.bytes - embedding) * 0.34


@pytest.mark.parametrize("layout", ["TP_2", "TP_4"])
def test_slices_are_laid_out_as_the_machine_likes(layout, tmp_path) -> None:
    tiny(tmp_path, "Qwen3Moe", **MOE, vocab_size=128)
    wanted = settled_logits(SOLE, str(tmp_path))
    found = run_ranks(layout, settled_logits, str(tmp_path))
    for each in found:
        assert torch.equal(each, found[0])
    assert float((found[0] - wanted).abs().max() / wanted.abs().max()) < CLOSE


@pytest.mark.parametrize(
    ("case", "dispatcher"), [("qwen3 moe", "gathered"), ("deepseek v3", "exchanged")]
)
def test_parts_that_divide_experts_cut_each_of_them(case, dispatcher, tmp_path) -> None:
    """Both parts are given the same prompts."""
    kind, changes = CASES[case]
    tiny(tmp_path, kind, **changes)
    wanted = alone(str(tmp_path))
    asked = partial(ask, dispatcher=dispatcher)
    found = run_ranks("TP_2 x DEP_2", asked, str(tmp_path))
    agrees(found, wanted)
    for rank, each in enumerate(found):
        experts = {int(name.split(".")[5]) for name in each.sizes if ".experts." in name}
        assert experts == set(range(3) if rank < 2 else range(3, 6))
        assert each.read == each.bytes
        for name, size in each.sizes.items():
            if ".experts." in name:
                assert size * 2 == wanted.sizes[name]


@pytest.mark.parametrize(
    ("changes", "slices", "words"),
    [
        ({}, 3, r"llama: num_attention_heads has 4, which cannot be cut 3 ways: .*TP_n.*TP_3"),
        (
            {"hidden_size": 48, "num_attention_heads": 12, "num_key_value_heads": 3},
            2,
            "num_key_value_heads has 3",
        ),
        ({"intermediate_size": 49}, 2, r"layers\.0\.mlp\.gate_proj \(outputs\) has 49"),
    ],
)
def test_what_cannot_be_cut_is_named(changes, slices, words, tmp_path) -> None:
    tiny(tmp_path, **{"head_dim": 8, **changes})
    with pytest.raises(ConfigError, match=words):
        one_of(tmp_path, slices)


def test_a_cut_through_a_block_is_refused_where_weights_stay_in_8_bits(tmp_path) -> None:
    in_blocks(tmp_path, "Llama", {"head_dim": 64, "num_key_value_heads": 4})
    with pytest.raises(ConfigError, match=r"q_proj has 256 outputs in fp8 blocks of 128, .* 64 wo"):
        one_of(tmp_path, 4, quantisation="fp8")
    one_of(tmp_path, 4, quantisation="none")


def one_of(path: Path, slices: int, **options: Any) -> CausalModel:
    """The second slice, loaded alone: what it has needs no others."""
    group, host = Group(slices, 1), HostGroup(slices, 1)
    mesh = Mesh(Layout(slices), 1, group, ALONE, host, ALONE_HOST, host)
    return load(
        path, device="cpu", dtype=torch.float32, ops=reference_ops(), mesh=mesh, **options
    ).model
