"""Experts in a network: both formats, weights laid out anew or in 8 bits, adapters beside them, and
greedy tokens through the whole engine."""

from __future__ import annotations

import json

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from safetensors.torch import load_file, save_file  # noqa: E402

from tests.plugins.engines.cuda.driving import engine, job, run  # noqa: E402
from tests.plugins.engines.cuda.load.checkpoints import SIZES, VOCABULARY, tiny  # noqa: E402
from tests.plugins.engines.cuda.models.paged import Paged, reference_ops  # noqa: E402
from tokenwire.core.errors import ConfigError  # noqa: E402
from tokenwire.kernels.op import Signature  # noqa: E402
from tokenwire.kernels.ops import Ops  # noqa: E402
from tokenwire.plugins.engines.cuda.layers.dispatch import Contiguous, LocalDispatcher, Masked  # noqa: E402
from tokenwire.plugins.engines.cuda.layers.moe import Moe  # noqa: E402
from tokenwire.plugins.engines.cuda.layers.site import Site  # noqa: E402
from tokenwire.plugins.engines.cuda.load import load  # noqa: E402
from tokenwire.plugins.engines.cuda.load.adapters import put_adapter, read_adapter  # noqa: E402
from tokenwire.plugins.engines.cuda.models.families import parse_config  # noqa: E402

pytestmark = pytest.mark.torch

KINDS = {
    "Qwen3Moe": {
        "num_experts": 6,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 24,
        "norm_topk_prob": True,
        "head_dim": 8,
    },
    "Mixtral": {"num_local_experts": 4, "num_experts_per_tok": 2},
}
PROMPTS = ([5, 17, 42, 42, 7, 11, 12, 13, 60, 42, 42], [9, 8], list(range(3, 40)))


@pytest.mark.parametrize("kind", KINDS)
def test_greedy_tokens_through_the_engine_are_transformers(kind, tmp_path) -> None:
    network = tiny(tmp_path, kind, **KINDS[kind])
    made = engine(tmp_path)
    found = run(made, *(job(str(at), each) for at, each in enumerate(PROMPTS)))
    for at, prompt in enumerate(PROMPTS):
        wanted = network.generate(
            torch.tensor([prompt]),
            attention_mask=torch.ones(1, len(prompt), dtype=torch.int64),
            max_new_tokens=12,
            min_new_tokens=12,
            do_sample=False,
            eos_token_id=None,
            pad_token_id=0,
        )[0, len(prompt) :].tolist()
        assert found[str(at), 0].ids == wanted
        assert len(set(wanted)) > 2


@pytest.mark.parametrize("kind", KINDS)
def test_weights_laid_out_anew_give_the_same(kind, tmp_path) -> None:
    network = tiny(tmp_path, kind, **KINDS[kind])
    ops = Ops.choose(Signature(), environ={})
    model = load(tmp_path, device="cpu", dtype=torch.float32, ops=ops).model
    model.settle()
    ids = torch.randint(VOCABULARY, (20,)).tolist()
    with torch.no_grad():
        wanted = network(torch.tensor([ids])).logits[0]
    found = Paged(model, [ids]).step({0: len(ids)})[0]
    torch.testing.assert_close(found, wanted, atol=1e-4, rtol=1e-4)


def layer(yields, ops):
    config = parse_config({**SIZES, **KINDS["Qwen3Moe"], "architectures": ["Qwen3MoeModel"]})
    site = Site(config, ops, torch.device("cpu"), torch.float32)
    assert config.mixture is not None
    dispatcher = LocalDispatcher(ops, config.mixture.experts, yields)
    made = Moe(site, "mlp", config.mixture, dispatcher)
    torch.manual_seed(3)
    for place in site.places.values():
        place.normal_(0, 0.3)
    made.settle()
    return made


@pytest.mark.parametrize("tokens", [1, 7, 33])
def test_both_formats_give_the_same(tokens) -> None:
    ops = reference_ops()
    x = torch.randn(tokens, 32, generator=torch.Generator().manual_seed(tokens))
    contiguous, masked = layer("contiguous", ops), layer("masked", ops)
    assert (contiguous.experts.takes, masked.experts.takes) == ("contiguous", "masked")
    torch.testing.assert_close(masked(x, None), contiguous(x, None), atol=1e-5, rtol=1e-5)


def test_a_token_beside_rows_of_no_numbers_is_what_it_is_alone() -> None:
    """Rows that only fill a step up may hold anything."""
    for ops in (reference_ops(), Ops.choose(Signature(), environ={})):
        made = layer("contiguous", ops)
        x = torch.randn(9, 32, generator=torch.Generator().manual_seed(0))
        alone = made(x, None)
        filled = torch.cat((torch.full((3, 32), torch.nan), x, torch.full((5, 32), torch.nan)))
        found = made(filled, None)
        torch.testing.assert_close(found[3:12], alone, atol=1e-6, rtol=1e-5)


def in_fp8(folder) -> None:
    """The experts' weights of a folder in fp8, a scale for each block of 128."""
    tensors = load_file(folder / "model.safetensors")
    for name in [name for name in tensors if ".experts." in name]:
        rows, columns = (size // 128 for size in tensors[name].shape)
        scales = torch.rand(rows, columns) * 0.01 + 0.002
        wide = scales.repeat_interleave(128, 0).repeat_interleave(128, 1)
        tensors[name] = (tensors[name] / wide).clamp(-448, 448).to(torch.float8_e4m3fn)
        tensors[f"{name}_scale_inv"] = scales
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    fields = json.loads((folder / "config.json").read_text())
    kept = [
        f"model.layers.{layer}.{name}" for layer in (0, 1) for name in ("self_attn", "mlp.gate")
    ]
    fields["quantization_config"] = {
        "quant_method": "fp8",
        "weight_block_size": [128, 128],
        "modules_to_not_convert": [*kept, "lm_head"],
    }
    (folder / "config.json").write_text(json.dumps(fields))


def test_8_bit_experts_stay_so_or_are_dequantised(tmp_path) -> None:
    sizes = {**KINDS["Qwen3Moe"], "hidden_size": 128, "moe_intermediate_size": 128}
    tiny(tmp_path, "Qwen3Moe", **sizes, initializer_range=0.1)
    in_fp8(tmp_path)
    ids = list(range(3, 20))
    found = {}
    for choice in ("fp8", "none"):
        model = load(
            tmp_path, device="cpu", dtype=torch.float32, ops=reference_ops(), quantisation=choice
        ).model
        moe = model.blocks[0].mlp
        assert isinstance(moe, Moe)
        assert (moe.experts.gate_up.scales is None) == (choice == "none")
        found[choice] = Paged(model, [ids]).step({0: len(ids)})[0]
    apart = (found["fp8"] - found["none"]).norm() / found["none"].norm()
    # The rows are quantised too: each number is off by up to 1 / 28 of its group's largest.
    assert 0 < float(apart) < 0.1


def layer_in_fp8(dtype, ops, yields="contiguous"):
    """Of 128-wide blocks, with noise in 8 bits."""
    sizes = {"hidden_size": 128, "moe_intermediate_size": 128}
    config = parse_config(
        {
            **SIZES,
            **KINDS["Qwen3Moe"],
            **sizes,
            "architectures": ["Qwen3MoeModel"],
            "quantization_config": {
                "quant_method": "fp8",
                "weight_block_size": [128, 128],
                "modules_to_not_convert": ["mlp.gate"],
            },
        }
    )
    site = Site(config, ops, torch.device("cpu"), dtype, keeps_fp8=True)
    assert config.mixture is not None
    made = Moe(site, "mlp", config.mixture, LocalDispatcher(ops, config.mixture.experts, yields))
    torch.manual_seed(3)
    for place in site.places.values():
        place.copy_(torch.randn(place.shape) * 0.3 if place.dim() < 2 else torch.rand(place.shape))
    made.settle()
    return made


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_8_bit_experts_give_the_same_in_either_form_and_of_rows_in_8_bits(dtype) -> None:
    ops = reference_ops()
    contiguous, masked = layer_in_fp8(dtype, ops), layer_in_fp8(dtype, ops, "masked")
    assert masked.experts.gate_up.weight.dtype == torch.float8_e4m3fn
    x = (torch.randn(19, 128, generator=torch.Generator().manual_seed(2)) / 8).to(dtype)
    wanted = contiguous(x, None)
    torch.testing.assert_close(masked(x, None), wanted, atol=0, rtol=1e-5)
    weights, experts = contiguous.route(contiguous.router(x, None))
    sent = contiguous.dispatcher.dispatch(x, experts, weights)
    assert isinstance(sent, Contiguous)
    its = contiguous.experts
    plain = its(sent)
    gated = ops.silu_mul(its.gate_up.contiguous(sent.rows, sent.offsets))
    assert torch.equal(plain, its.down.contiguous(gated, sent.offsets))
    q, scales = ops.fp8_quant(sent.rows)
    small = Contiguous(q, sent.offsets, sent.inverse, scales=scales)
    assert torch.equal(its(small), plain)
    sent = masked.dispatcher.dispatch(x, experts, weights)
    assert isinstance(sent, Masked)
    q, scales = ops.fp8_quant(sent.rows.flatten(0, 1))
    room = sent.rows.shape[:2]
    small_rows = Masked(
        q.unflatten(0, room), sent.counts, sent.inverse, scales=scales.unflatten(0, room)
    )
    found = masked.dispatcher.combine(masked.experts(small_rows), small_rows, weights, experts)
    assert torch.equal(found, masked(x, None))


def save_adapter(folder, module: str, inputs: int, outputs: int):
    folder.mkdir()
    name = f"base_model.model.{module}"
    save_file(
        {
            f"{name}.lora_A.weight": torch.randn(2, inputs),
            f"{name}.lora_B.weight": torch.randn(outputs, 2),
        },
        folder / "adapter_model.safetensors",
    )
    (folder / "adapter_config.json").write_text(json.dumps({"r": 2, "lora_alpha": 2}))
    return read_adapter(folder)


def test_adapters_reach_attention_and_experts_refuse_them(tmp_path) -> None:
    tiny(tmp_path / "base", "Mixtral", **KINDS["Mixtral"])
    model = load(tmp_path / "base", device="cpu", dtype=torch.float32, ops=reference_ops()).model
    model.reserve_adapters(1, 2)
    ids = list(range(10))
    plain = Paged(model, [ids]).step({0: 10}, {0: 1})[0]
    put_adapter(model, 1, save_adapter(tmp_path / "a", "model.layers.1.self_attn.o_proj", 32, 32))
    assert not torch.allclose(Paged(model, [ids]).step({0: 10}, {0: 1})[0], plain)
    for at, name in enumerate(("block_sparse_moe.experts.3.w1", "mlp.experts.base_layer")):
        refused = save_adapter(tmp_path / f"refused{at}", f"model.layers.0.{name}", 32, 48)
        with pytest.raises(ConfigError, match="experts take no adapters in this engine"):
            put_adapter(model, 1, refused)


def test_configs_that_cannot_be_are_named() -> None:
    fields = {**SIZES, **KINDS["Qwen3Moe"], "architectures": ["Qwen3MoeForCausalLM"]}
    with pytest.raises(ConfigError, match=r"num_experts_per_tok: wanted 1 to num_experts \(6\)"):
        parse_config({**fields, "num_experts_per_tok": 7})
    for name in ("num_experts", "moe_intermediate_size", "num_experts_per_tok"):
        with pytest.raises(ConfigError, match="wanted the field"):
            parse_config({**fields, name: None})
    assert parse_config({**fields, "mlp_only_layers": [0, 1]}).mixture is None
    sparse = parse_config({**fields, "num_hidden_layers": 7, "decoder_sparse_step": 3})
    assert sparse.mixture is not None
    assert sparse.mixture.layers == (2, 5)


def test_a_missing_expert_is_named(tmp_path) -> None:
    tiny(tmp_path, "Qwen3Moe", **KINDS["Qwen3Moe"])
    tensors = load_file(tmp_path / "model.safetensors")
    del tensors["model.layers.1.mlp.experts.4.up_proj.weight"]
    save_file(tensors, tmp_path / "model.safetensors", {"format": "pt"})
    with pytest.raises(ConfigError, match=r"wanted the tensor .*experts\.4\.up_proj\.weight"):
        load(tmp_path, device="cpu", dtype=torch.float32, ops=reference_ops())


def test_a_network_of_experts_has_no_more_memory_than_its_checkpoint(tmp_path) -> None:
    tiny(tmp_path, "Mixtral", **KINDS["Mixtral"])
    loaded = load(tmp_path, device="cpu", dtype=torch.float32, ops=reference_ops())
    tensors = load_file(tmp_path / "model.safetensors")
    assert loaded.bytes == sum(each.numel() * 4 for each in tensors.values())
