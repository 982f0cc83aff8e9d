"""fp8 checkpoints with a scale a block: dequantised, or multiplied in fp8."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from safetensors.torch import load_file, save_file  # noqa: E402

from tests.plugins.engines.cuda.driving import engine, job, run  # noqa: E402
from tests.plugins.engines.cuda.load.checkpoints import tiny  # noqa: E402
from tests.plugins.engines.cuda.models.paged import Paged, reference_ops  # noqa: E402
from tokenwire.core.errors import ConfigError  # noqa: E402
from tokenwire.plugins.engines.cuda.load import keeps_fp8, load, load_config  # noqa: E402
from tokenwire.plugins.engines.cuda.models.config import Quantisation  # noqa: E402

pytestmark = pytest.mark.torch

BLOCK = 128
SIZES = {"hidden_size": 256, "intermediate_size": 384, "initializer_range": 0.1}
IDS = list(range(3, 20))
WEIGHTS = "model.safetensors"


def blocks(values):
    """values [N, K] -> [ceil(N / 128), ceil(K / 128)] largest magnitudes."""
    rows, columns = (-(-size // BLOCK) for size in values.shape)
    found = torch.empty(rows, columns)
    for row in range(rows):
        for column in range(columns):
            part = values[row * BLOCK :, column * BLOCK :][:BLOCK, :BLOCK]
            found[row, column] = part.abs().max()
    return found


def spread(scales, shape):
    wide = scales.repeat_interleave(BLOCK, 0).repeat_interleave(BLOCK, 1)
    return wide[: shape[0], : shape[1]]


def quantise(folder: Path, network, **config) -> None:
    """The folder's linear layers in fp8; the network's own get the values that are left."""
    tensors = load_file(folder / WEIGHTS)
    parameters = dict(network.named_parameters())
    for name in [each for each in tensors if each.endswith("proj.weight")]:
        values = tensors[name]
        scales = blocks(values) / 448.0
        small = (values / spread(scales, values.shape)).to(torch.float8_e4m3fn)
        tensors[name], tensors[f"{name}_scale_inv"] = small, scales
        with torch.no_grad():
            parameters[name].copy_(small.float() * spread(scales, values.shape))
    save_file(tensors, folder / WEIGHTS, {"format": "pt"})
    fields = json.loads((folder / "config.json").read_text())
    fields["quantization_config"] = {
        "quant_method": "fp8",
        "weight_block_size": [BLOCK, BLOCK],
        "activation_scheme": "dynamic",
        **config,
    }
    (folder / "config.json").write_text(json.dumps(fields))


def loaded(folder: Path, quantisation: str, ops=None):
    return load(
        folder,
        device="cpu",
        dtype=torch.float32,
        ops=ops or reference_ops(),
        quantisation=quantisation,
    ).model


def logits(model):
    return Paged(model, [IDS]).step({0: len(IDS)})[0]


def wanted(network):
    with torch.no_grad():
        return network(torch.tensor([IDS])).logits[0]


@pytest.mark.parametrize("inner", [384, 200])
def test_dequantised_weights_are_the_oracle_s(tmp_path, inner) -> None:
    network = tiny(tmp_path, **{**SIZES, "intermediate_size": inner})
    quantise(tmp_path, network)
    model = loaded(tmp_path, "auto")
    torch.testing.assert_close(logits(model), wanted(network), atol=1e-4, rtol=1e-4)
    assert {place.dtype for place in model.places.values()} == {torch.float32}


def test_weights_that_stay_fp8_take_a_quarter_and_say_nearly_the_same(tmp_path) -> None:
    network = tiny(tmp_path, **SIZES, num_key_value_heads=2, head_dim=64)
    quantise(tmp_path, network)
    model = loaded(tmp_path, "fp8")
    attention = model.blocks[0].attention
    assert attention.qkv.weight.dtype == torch.float8_e4m3fn
    assert attention.qkv.scales.shape == (4, 2)
    assert model.blocks[0].mlp.gate_up.scales.shape == (6, 2)
    found, oracle = logits(model), wanted(network)
    # Why so wide: activations are rounded to fp8 too, to 3 bits of mantissa.
    distance = 1 - 2 * (found * oracle).sum() / (found.square().sum() + oracle.square().sum())
    assert distance < 2e-2


def test_with_exact_activations_it_is_the_oracle(tmp_path) -> None:
    plain = reference_ops()

    def multiply(x, w, scales, x_scales=None, *, dtype=None):
        return x @ (w.float() * spread(scales, w.shape)).T

    def activate(x):
        return plain.silu_mul(x), None

    network = tiny(tmp_path, "Qwen2", **SIZES, head_dim=64)
    quantise(tmp_path, network)
    exact = replace(plain, fp8_matmul=multiply, silu_mul_quant=activate)
    model = loaded(tmp_path, "fp8", exact)
    torch.testing.assert_close(logits(model), wanted(network), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_activations_are_quantised_once_and_to_the_same_bits(tmp_path, dtype) -> None:
    quantise(tmp_path, tiny(tmp_path, **SIZES, head_dim=64, mlp_bias=True))
    ops, found = reference_ops(), []

    def told(x):
        found.append(x)
        return ops.silu_mul_quant(x)

    mlp = (
        load(
            tmp_path,
            device="cpu",
            dtype=dtype,
            ops=replace(ops, silu_mul_quant=told),
            quantisation="fp8",
        )
        .model.blocks[0]
        .mlp
    )
    x = torch.randn(5, 256, generator=torch.Generator().manual_seed(1)).to(dtype)
    given = mlp(x, None)
    two_steps = mlp.down(ops.silu_mul(mlp.gate_up(x, None)), None)
    assert given.dtype == dtype
    assert torch.equal(given, two_steps)
    assert len(found) == 1
    # Adapters add to what is not quantised.
    assert torch.equal(mlp(x, torch.zeros(5, 1)), two_steps)
    assert len(found) == 1


def test_the_setting_says_what_stays_in_fp8(tmp_path) -> None:
    quantise(tmp_path / "small", tiny(tmp_path / "small", **SIZES, head_dim=64))
    tiny(tmp_path / "plain")
    sizes = {}
    for choice in ("auto", "none", "fp8"):
        made = engine(tmp_path / "small", quantisation=choice)
        sizes[choice] = made.status().about["weights_gib"]
        assert run(made, job("a", IDS))["a", 0].ids
    assert sizes["auto"] == sizes["none"] > 2 * sizes["fp8"]
    with pytest.raises(ConfigError, match=r"quantisation: fp8, and .* \(llama\) have none: set"):
        engine(tmp_path / "plain", quantisation="fp8")
    with pytest.raises(ConfigError, match=r'quantisation = "int4": wanted one of'):
        engine(tmp_path / "small", quantisation="int4")
    config = load_config(tmp_path / "small")
    odd = structs.replace(config, quantisation=Quantisation((64, 64)))
    with pytest.raises(ConfigError, match="has blocks of 64 x 64, where products take 128 x 128"):
        keeps_fp8("fp8", odd, "cuda")
    assert keeps_fp8("auto", config, "cuda")
    assert not keeps_fp8("none", config, "cuda")
    few = structs.replace(config, quantisation=Quantisation((1, 32), method="mxfp4"))
    assert not keeps_fp8("auto", few, "cuda")
    with pytest.raises(ConfigError, match="have mxfp4: set quantisation to auto"):
        keeps_fp8("fp8", few, "cuda")


def test_parts_that_no_block_fits_are_dequantised(tmp_path) -> None:
    network = tiny(tmp_path, **{**SIZES, "intermediate_size": 200}, head_dim=64)
    quantise(tmp_path, network)
    model = loaded(tmp_path, "fp8")
    assert model.blocks[0].mlp.gate_up.weight.dtype == torch.float32
    assert model.blocks[0].attention.output.weight.dtype == torch.float8_e4m3fn


def test_modules_that_are_not_quantised_stay_as_they_are(tmp_path) -> None:
    network = tiny(tmp_path, **SIZES, head_dim=64)
    plain = load_file(tmp_path / WEIGHTS)["model.layers.0.mlp.down_proj.weight"]
    quantise(tmp_path, network, modules_to_not_convert=["model.layers.0.mlp"])
    tensors = load_file(tmp_path / WEIGHTS)
    for part in ("gate", "up", "down"):
        name = f"model.layers.0.mlp.{part}_proj.weight"
        scales = tensors.pop(f"{name}_scale_inv")
        tensors[name] = tensors[name].float() * spread(scales, tensors[name].shape)
    tensors["model.layers.0.mlp.down_proj.weight"] = plain
    save_file(tensors, tmp_path / WEIGHTS, {"format": "pt"})
    model = loaded(tmp_path, "fp8")
    assert torch.equal(model.blocks[0].mlp.down.weight, plain)
    assert model.blocks[1].mlp.down.weight.dtype == torch.float8_e4m3fn


def test_scales_that_are_missing_or_of_another_shape_are_named(tmp_path) -> None:
    quantise(tmp_path, tiny(tmp_path, **SIZES))
    tensors = load_file(tmp_path / WEIGHTS)
    name = "model.layers.1.mlp.up_proj.weight"
    scales = tensors.pop(f"{name}_scale_inv")
    save_file(tensors, tmp_path / WEIGHTS)
    with pytest.raises(ConfigError, match=rf"'{name}' is F8_E4M3: wanted '{name}_scale_inv'"):
        loaded(tmp_path, "none")
    save_file({**tensors, f"{name}_scale_inv": scales[:1]}, tmp_path / WEIGHTS)
    with pytest.raises(ConfigError, match=rf"{name}_scale_inv: wanted the shape \[3, 2\], got"):
        loaded(tmp_path, "none")


def test_a_plain_weight_where_fp8_was_announced_is_named(tmp_path) -> None:
    quantise(tmp_path, tiny(tmp_path, **SIZES))
    name = "model.layers.1.mlp.up_proj.weight"
    tensors = load_file(tmp_path / WEIGHTS)
    tensors[name] = tensors[name].float()
    save_file(tensors, tmp_path / WEIGHTS)
    with pytest.raises(ConfigError, match=rf"{name}': wanted F8_E4M3, got F32: name the module"):
        loaded(tmp_path, "fp8")
