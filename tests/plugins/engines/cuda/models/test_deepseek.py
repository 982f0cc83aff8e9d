"""DeepSeek V2 and V3 say what transformers' do: latents in the cache, absorbed or not, experts by
groups; in 8 bits, with adapters, and through the whole engine."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from safetensors.torch import load_file, save_file  # noqa: E402

from tests.plugins.engines.cuda.driving import engine, job, poison, waves  # noqa: E402
from tests.plugins.engines.cuda.load.test_fp8 import blocks, spread  # noqa: E402
from tests.plugins.engines.cuda.models.paged import Paged, reference_ops  # noqa: E402
from tests.plugins.engines.cuda.parallel.ranks import run_ranks  # noqa: E402
from tests.plugins.engines.cuda.parallel.sliced import ask  # noqa: E402
from tokenwire.core.errors import ConfigError  # noqa: E402
from tokenwire.kernels.op import Signature  # noqa: E402
from tokenwire.kernels.ops import Ops  # noqa: E402
from tokenwire.plugins.engines.cuda.layers import absorb  # noqa: E402
from tokenwire.plugins.engines.cuda.layers.mla import LatentAttention  # noqa: E402
from tokenwire.plugins.engines.cuda.layers.mlp import Mlp  # noqa: E402
from tokenwire.plugins.engines.cuda.layers.packed import pack  # noqa: E402
from tokenwire.plugins.engines.cuda.load import (  # noqa: E402
    load,
    load_embedder,
    put_adapter,
    read_adapter,
)
from tokenwire.plugins.engines.cuda.parallel.mesh import SOLE  # noqa: E402

pytestmark = pytest.mark.torch

CLOSE = 1e-4
CONFIG, WEIGHTS = "config.json", "model.safetensors"
VOCABULARY = 160
SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "max_position_embeddings": 96,
    "initializer_range": 0.3,
    "tie_word_embeddings": False,
    "q_lora_rank": 12,
    "kv_lora_rank": 10,
    "qk_nope_head_dim": 4,
    "qk_rope_head_dim": 6,
    "v_head_dim": 7,
    "n_routed_experts": 8,
    "num_experts_per_tok": 3,
    "n_shared_experts": 2,
    "moe_intermediate_size": 12,
    "first_k_dense_replace": 1,
    "n_group": 4,
    "topk_group": 2,
}
YARN = {
    "rope_type": "yarn",
    "rope_theta": 1000.0,
    "factor": 4.0,
    "original_max_position_embeddings": 24,
    "mscale": 0.7,
    "mscale_all_dim": 1.3,
}
GREEDY = {"n_group": None, "topk_group": None, "topk_method": "greedy"}
CASES = {
    "v2 lite": ("DeepseekV2", {**GREEDY, "q_lora_rank": None}),
    "v2": (
        "DeepseekV2",
        {
            "topk_method": "group_limited_greedy",
            "routed_scaling_factor": 4.0,
            "rope_parameters": {**YARN, "mscale": 0.707, "mscale_all_dim": 0.707},
        },
    ),
    "v2 biased, dense": (
        "DeepseekV2",
        {**GREEDY, "attention_bias": True, "mlp_bias": True, "first_k_dense_replace": 3},
    ),
    "v3": ("DeepseekV3", {"rope_parameters": YARN}),
    "v3 one group, not renormalised, no q_lora": (
        "DeepseekV3",
        {"n_group": 1, "topk_group": 1, "norm_topk_prob": False, "q_lora_rank": None},
    ),
    "v3 odd sizes, biased": (
        "DeepseekV3",
        {
            "kv_lora_rank": 9,
            "qk_nope_head_dim": 5,
            "qk_rope_head_dim": 2,
            "v_head_dim": 3,
            "attention_bias": True,
            "n_shared_experts": 1,
        },
    ),
    "v3 half split": ("DeepseekV3", {"rope_interleave": False, "first_k_dense_replace": 0}),
}
PROMPTS = ([5, 17, 42, 42, 7, 11, 12, 13, 60, 42, 42], [9, 8], list(range(3, 40)))


def make(case: str, folder, **changes):
    """transformers' network of that case, norms, biases and the router's bias random too."""
    kind, sizes = CASES[case]
    torch.manual_seed(0)
    config = getattr(transformers, f"{kind}Config")(**{**SIZES, **sizes, **changes})
    config._attn_implementation = "eager"
    network = getattr(transformers, f"{kind}ForCausalLM")(config).eval()
    with torch.no_grad():
        for name, values in [*network.named_parameters(), *network.named_buffers()]:
            if values.dim() == 1 and "inv_freq" not in name:
                values.copy_(torch.randn_like(values) * 0.3 + float("norm" in name))
    network.save_pretrained(folder)
    return network


def loaded(folder, ops=None, **options):
    ops = ops or reference_ops()
    return load(folder, device="cpu", dtype=torch.float32, ops=ops, **options).model


def wanted(network, ids):
    with torch.no_grad():
        return network(torch.tensor([ids])).logits[0]


def in_steps(model, sequences, steps):
    """Logits of whole sequences; the last tokens one by one."""
    paged = Paged(model, sequences)
    found = [[] for _ in sequences]
    while any(paged.computed[at] < len(each) for at, each in enumerate(sequences)):
        step = steps.pop(0) if steps else dict.fromkeys(range(len(sequences)), 1)
        counts = {at: n for at, n in step.items() if paged.computed[at] < len(sequences[at])}
        for at, logits in paged.step(counts).items():
            found[at].append(logits)
    return [torch.cat(each) for each in found]


@pytest.mark.parametrize("case", CASES)
def test_logits_equal_transformers(case: str, tmp_path) -> None:
    """In chunks with and without a prefix, beside decodes, and token by token."""
    network = make(case, tmp_path)
    model = loaded(tmp_path)
    sequences = [torch.randint(VOCABULARY, (length,)).tolist() for length in (31, 15)]
    steps = [{0: 5}, {0: 7, 1: 3}, {1: 1, 0: 1}, {0: 11, 1: 1}, {1: 6}, {0: 1, 1: 2}]
    for ids, found in zip(sequences, in_steps(model, sequences, steps), strict=True):
        theirs = wanted(network, ids)
        torch.testing.assert_close(found, theirs, atol=CLOSE, rtol=CLOSE)
        assert theirs.argmax(-1).unique().numel() > 5


@pytest.mark.parametrize("case", ["v2", "v3 odd sizes, biased"])
def test_absorbed_is_unabsorbed(case: str, tmp_path, monkeypatch) -> None:
    make(case, tmp_path)
    model = loaded(tmp_path)
    sequences = [torch.randint(VOCABULARY, (length,)).tolist() for length in (31, 15)]
    ops, calls = model.ops, []

    def counted(*args, **names):
        calls.append(1)
        return ops.mla_prefill(*args, **names)

    for block in model.blocks:
        monkeypatch.setattr(block.attention, "ops", replace(ops, mla_prefill=counted))
    found = {}
    for is_absorbed in (False, True):
        calls.clear()
        monkeypatch.setattr(absorb, "is_cheaper", lambda *_, is_so=is_absorbed: is_so)
        steps = [{0: 9}, {0: 1, 1: 6}, {0: 12, 1: 5}, {1: 1, 0: 2}]
        found[is_absorbed] = torch.cat(in_steps(model, sequences, steps))
        assert bool(calls) != is_absorbed
    torch.testing.assert_close(found[True], found[False], atol=CLOSE, rtol=CLOSE)


@pytest.mark.parametrize("case", ["v2 lite", "v3"])
@pytest.mark.parametrize("padded", [False, True])
def test_greedy_tokens_through_the_engine_are_transformers(case, padded, tmp_path) -> None:
    """Cold, and then with all that is shared found in the cache."""
    network = make(case, tmp_path)
    made = engine(tmp_path, graphs=padded)
    poison(made)
    many = [
        [job(f"{wave}{at}", each) for at, each in enumerate(PROMPTS)] for wave in ("cold", "hit")
    ]
    found = waves(made, *many)
    for at, prompt in enumerate(PROMPTS):
        ids = network.generate(
            torch.tensor([prompt]),
            attention_mask=torch.ones(1, len(prompt), dtype=torch.int64),
            max_new_tokens=12,
            min_new_tokens=12,
            do_sample=False,
            eos_token_id=None,
            pad_token_id=0,
        )[0, len(prompt) :].tolist()
        assert found[f"cold{at}", 0].ids == found[f"hit{at}", 0].ids == ids
        assert len(set(ids)) > 2
    assert found["hit2", 0].counts.cached == 36
    status = made.status()
    layout = status.card.kv_layout
    assert (layout.kind, layout.kv_heads, layout.head_dim) == ("mla", 1, 16)


def test_a_cache_of_8_bits_gives_the_same_from_the_cache_and_beside_others(tmp_path) -> None:
    make("v3", tmp_path)
    alone = waves(engine(tmp_path, kv_dtype="fp8"), [job("a", PROMPTS[0])])["a", 0].ids
    made = engine(tmp_path, kv_dtype="fp8")
    poison(made)
    found = waves(made, [job("a", PROMPTS[0]), job("b", [9, 8])], [job("c", PROMPTS[0])])
    assert found["a", 0].ids == found["c", 0].ids == alone
    plain, small = engine(tmp_path).status(), made.status()
    # The null block aside, the same memory holds four times as many.
    assert small.kv_blocks_total + 1 == pytest.approx(4 * (plain.kv_blocks_total + 1), rel=0.02)


@pytest.mark.parametrize("case", ["v2", "v3"])
def test_weights_laid_out_anew_give_the_same(case, tmp_path) -> None:
    network = make(case, tmp_path)
    model = loaded(tmp_path, Ops.choose(Signature(), environ={}))
    model.settle()
    ids = torch.randint(VOCABULARY, (20,)).tolist()
    found = Paged(model, [ids]).step({0: len(ids)})[0]
    torch.testing.assert_close(found, wanted(network, ids), atol=CLOSE, rtol=CLOSE)


WIDE = {
    "hidden_size": 256,
    "intermediate_size": 384,
    "moe_intermediate_size": 128,
    "q_lora_rank": 128,
    "kv_lora_rank": 128,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 64,
    "initializer_range": 0.1,
    "rope_parameters": {"rope_type": "default", "rope_theta": 1000.0},
}


def multiply(x, w, scales, x_scales=None, *, dtype=None):
    return x @ (w.float() * spread(scales, w.shape)).T


def multiply_grouped(x, w, scales, offsets, x_scales=None, *, dtype=None):
    parts = [
        multiply(x[start:end], w[at], scales[at])
        for at, (start, end) in enumerate(pairwise(offsets.tolist()))
    ]
    return torch.cat(parts)


def exact():
    """Products in 8 bits whose activations are not rounded."""
    plain = reference_ops()
    return replace(
        plain,
        fp8_matmul=multiply,
        fp8_grouped_matmul=multiply_grouped,
        silu_mul_quant=lambda x: (plain.silu_mul(x), None),
    )


def in_8_bits(folder, **changes):
    """A checkpoint in fp8 by blocks of 128, experts too; a network of the values that are left."""
    make("v3", folder, **{**WIDE, **changes})
    tensors, left = load_file(folder / WEIGHTS), {}
    for name, values in list(tensors.items()):
        if "_proj" in name:
            scales = blocks(values) / 448.0
            wide = spread(scales, values.shape)
            tensors[name] = (values / wide).to(torch.float8_e4m3fn)
            tensors[f"{name}_scale_inv"] = scales
            left[name] = tensors[name].float() * wide
        else:
            left[name] = values
    plain = folder / "plain"
    plain.mkdir()
    fields = json.loads((folder / CONFIG).read_text())
    (plain / CONFIG).write_text(json.dumps(fields))
    save_file(left, plain / WEIGHTS, {"format": "pt"})
    save_file(tensors, folder / WEIGHTS, {"format": "pt"})
    fields["quantization_config"] = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    (folder / CONFIG).write_text(json.dumps(fields))
    return transformers.AutoModelForCausalLM.from_pretrained(plain, attn_implementation="eager")


@pytest.mark.parametrize("choice", ["none", "fp8"])
def test_8_bit_weights_are_the_oracle_s(choice, tmp_path) -> None:
    network = in_8_bits(tmp_path)
    model = loaded(tmp_path, exact(), quantisation=choice)
    attention = model.blocks[0].attention
    assert isinstance(attention, LatentAttention)
    assert attention.w_uk.dtype == attention.w_uv.dtype == torch.float32
    stays = torch.float8_e4m3fn if choice == "fp8" else torch.float32
    assert attention.q_up.weight.dtype == stays
    assert attention.output.weight.dtype == stays
    assert model.blocks[1].mlp.experts.down.weight.dtype == stays
    assert attention.kv_down.weight.dtype == torch.float32, "192 rows are not whole blocks"
    ids = list(range(3, 20))
    found = torch.cat(in_steps(model, [ids], [{0: 11}]))
    torch.testing.assert_close(found, wanted(network, ids), atol=CLOSE, rtol=CLOSE)


@pytest.mark.parametrize("choice", ["none", "fp8"])
def test_slices_of_8_bit_weights_say_what_the_whole_says(choice, tmp_path) -> None:
    in_8_bits(tmp_path, intermediate_size=512, moe_intermediate_size=256)
    alone = ask(SOLE, str(tmp_path), choice)
    for each in run_ranks("TP_2", ask, str(tmp_path), choice):
        torch.testing.assert_close(each.logits, alone.logits, atol=1e-4, rtol=1e-4)
        assert each.ids == alone.ids
        assert ("torch.float8_e4m3fn" in each.kinds) == (choice == "fp8")
        assert each.bytes < 0.6 * alone.bytes


def test_rows_that_would_change_blocks_are_dequantised(tmp_path) -> None:
    """A head's rotated rows lie over an edge between two scales."""
    network = in_8_bits(tmp_path, qk_nope_head_dim=96)
    model = loaded(tmp_path, exact(), quantisation="fp8")
    assert model.blocks[0].attention.q_up.weight.dtype == torch.float32
    ids = list(range(3, 20))
    found = Paged(model, [ids]).step({0: len(ids)})[0]
    torch.testing.assert_close(found, wanted(network, ids), atol=CLOSE, rtol=CLOSE)


@pytest.mark.parametrize("module", ["q_b_proj", "kv_a_proj_with_mqa", "o_proj", "q_a_proj"])
def test_an_adapter_is_the_sum_of_the_weights(module, tmp_path) -> None:
    """Those whose rows lie in another order too."""
    network = make("v3", tmp_path / "base")
    weight = getattr(network.model.layers[1].self_attn, module).weight
    outputs, inputs = weight.shape
    down, up = torch.randn(2, inputs) * 0.3, torch.randn(outputs, 2) * 0.3
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    name = f"base_model.model.model.layers.1.self_attn.{module}"
    save_file(
        {f"{name}.lora_A.weight": down, f"{name}.lora_B.weight": up},
        adapter / "adapter_model.safetensors",
    )
    (adapter / "adapter_config.json").write_text(json.dumps({"r": 2, "lora_alpha": 2}))
    model = loaded(tmp_path / "base")
    model.reserve_adapters(1, 2)
    put_adapter(model, 1, read_adapter(adapter))
    ids = list(range(10, 30))
    plain = wanted(network, ids)
    with torch.no_grad():
        weight += up @ down
    found = Paged(model, [ids]).step({0: 20}, {0: 1})[0]
    torch.testing.assert_close(found, wanted(network, ids), atol=CLOSE, rtol=CLOSE)
    assert not torch.allclose(found, plain, atol=1e-2)


def test_layers_that_predict_further_tokens_are_passed_over(tmp_path) -> None:
    network = make("v3", tmp_path, num_nextn_predict_layers=1)
    file = tmp_path / WEIGHTS
    tensors = {name: each for name, each in load_file(file).items() if ".layers.3." not in name}
    tensors["model.layers.3.eh_proj.weight"] = torch.zeros(32, 64)
    tensors["model.layers.3.self_attn.o_proj.weight"] = torch.zeros(32, 28)
    save_file(tensors, file, {"format": "pt"})
    ids = list(range(9))
    found = Paged(loaded(tmp_path), [ids]).step({0: 9})[0]
    torch.testing.assert_close(found, wanted(network, ids), atol=CLOSE, rtol=CLOSE)
    tensors["model.layers.4.eh_proj.weight"] = torch.zeros(1)
    save_file(tensors, file, {"format": "pt"})
    with pytest.raises(ConfigError, match=r"model.layers.4.eh_proj.weight.*is unknown"):
        loaded(tmp_path)


def test_first_layers_are_dense(tmp_path) -> None:
    make("v3", tmp_path)
    model = loaded(tmp_path)
    assert [isinstance(block.mlp, Mlp) for block in model.blocks] == [True, False, False]


def test_vectors_of_texts_are_the_oracle_s(tmp_path) -> None:
    network = make("v3", tmp_path)
    found = load_embedder(tmp_path, device="cpu", dtype=torch.float32, ops=reference_ops())
    with torch.no_grad():
        last = [network.model(torch.tensor([each])).last_hidden_state[0, -1] for each in PROMPTS]
    wanted = torch.nn.functional.normalize(torch.stack(last), dim=-1)
    vectors = found.embedder.embed(pack(PROMPTS, "cpu"))
    torch.testing.assert_close(vectors, wanted, atol=CLOSE, rtol=CLOSE)
