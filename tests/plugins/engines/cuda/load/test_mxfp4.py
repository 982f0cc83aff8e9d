"""Four-bit weights: every code by every scale is the specification's number, and a checkpoint in
the published layout loads to those, whole, cut, and expert by expert."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from safetensors.torch import load_file, save_file  # noqa: E402

from tests.plugins.engines.cuda.models.paged import Paged, reference_ops  # noqa: E402
from tests.plugins.engines.cuda.models.test_gpt_oss import make  # noqa: E402
from tokenwire.core.errors import ConfigError  # noqa: E402
from tokenwire.plugins.engines.cuda.layers.site import Cut  # noqa: E402
from tokenwire.plugins.engines.cuda.load import load  # noqa: E402
from tokenwire.plugins.engines.cuda.load.mxfp4 import dequantised  # noqa: E402
from tokenwire.plugins.engines.cuda.load.safetensors_source import SafetensorsSource  # noqa: E402
from tokenwire.plugins.engines.cuda.load.stacked_source import StackedSource  # noqa: E402

pytestmark = pytest.mark.torch

SIZES = {"hidden_size": 64, "intermediate_size": 32, "num_local_experts": 3}
EXPERTS = "model.layers.{}.mlp.experts"


def number(code: int, exponent: int) -> Fraction | None:
    """OCP MX v1.0, 5.3.3 and 5.4.1, one number; None: NaN. Sign, two bits of exponent (bias 1),
    one of mantissa; no exponent: subnormal."""
    if exponent == 255:
        return None
    sign, power, mantissa = code >> 3, code >> 1 & 3, code & 1
    size = Fraction(2 + mantissa, 2) * 2 ** (power - 1) if power else Fraction(mantissa, 2)
    return (-1) ** sign * size * Fraction(2) ** (exponent - 127)


def as_float(value: Fraction | None) -> float:
    """float32 of an exact number: it is either exact or beyond what float32 holds."""
    if value is None:
        return math.nan
    if abs(value) >= 2**128:
        return math.copysign(math.inf, value)
    return float(value)


def test_every_code_by_every_scale() -> None:
    codes = torch.arange(16, dtype=torch.uint8)
    packed = codes | codes.flip(0) << 4
    blocks = packed.expand(256, 16).contiguous()
    scales = torch.arange(256, dtype=torch.uint8)
    found = dequantised(blocks[:, None], scales[:, None])
    wanted = torch.tensor(
        [
            [as_float(number(code, scale)) for low in range(16) for code in (low, 15 - low)]
            for scale in range(256)
        ],
        dtype=torch.float64,
    )
    torch.testing.assert_close(found.double(), wanted, rtol=0, atol=0, equal_nan=True)
    signs = torch.tensor([code > 7 for low in range(16) for code in (low, 15 - low)])
    assert torch.equal(torch.signbit(found[1]), signs)
    assert float(found[0].abs()[found[0] != 0].min()) == 2.0**-128


def test_it_is_what_transformers_makes_of_it() -> None:
    from transformers.integrations.mxfp4 import convert_moe_packed_tensors

    generator = torch.Generator().manual_seed(0)
    blocks = torch.randint(256, (3, 10, 4, 16), dtype=torch.uint8, generator=generator)
    scales = torch.randint(90, 160, (3, 10, 4), dtype=torch.uint8, generator=generator)
    theirs = convert_moe_packed_tensors(blocks, scales, dtype=torch.float32)
    assert torch.equal(dequantised(blocks, scales), theirs.transpose(1, 2))


def in_mxfp4(folder, layers: int = 3) -> dict[str, torch.Tensor]:
    """The experts of a saved network become random four-bit ones; gives what they are worth, each
    [E, N, K], by the names of the stacks, worked out one number at a time."""
    tensors = load_file(folder / "model.safetensors")
    generator = torch.Generator().manual_seed(4)
    worth = {}
    for layer in range(layers):
        for stack in ("gate_up_proj", "down_proj"):
            name = f"{EXPERTS.format(layer)}.{stack}"
            experts, inputs, outputs = tensors.pop(name).shape
            shape = experts, outputs, inputs // 32
            blocks = torch.randint(256, (*shape, 16), dtype=torch.uint8, generator=generator)
            scales = torch.randint(123, 126, shape, dtype=torch.uint8, generator=generator)
            tensors[f"{name}_blocks"], tensors[f"{name}_scales"] = blocks, scales
            worth[name] = torch.tensor(
                [
                    as_float(number(code, scale))
                    for block, scale in zip(
                        blocks.view(-1, 16).tolist(), scales.flatten().tolist(), strict=True
                    )
                    for byte in block
                    for code in (byte & 15, byte >> 4)
                ]
            ).view(experts, outputs, inputs)
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    fields = json.loads((folder / "config.json").read_text())
    fields["quantization_config"] = {
        "quant_method": "mxfp4",
        "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router"],
    }
    (folder / "config.json").write_text(json.dumps(fields))
    return worth


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_published_checkpoint_loads_to_exactly_its_numbers(dtype, tmp_path) -> None:
    network = make(tmp_path, **SIZES)
    worth = in_mxfp4(tmp_path)
    loaded = load(tmp_path, device="cpu", dtype=dtype, ops=reference_ops())
    for layer, block in enumerate(loaded.model.blocks):
        experts, name = block.mlp.experts, EXPERTS.format(layer)
        gate_up, down = worth[f"{name}.gate_up_proj"], worth[f"{name}.down_proj"]
        together = torch.cat((gate_up[:, 0::2], gate_up[:, 1::2]), 1)
        assert torch.equal(experts.gate_up.weight.float(), together)
        assert torch.equal(experts.down.weight.float(), down)
        bias = network.state_dict()[f"{name}.gate_up_proj_bias"].to(dtype)
        assert torch.equal(experts.gate_up.bias, torch.cat((bias[:, 0::2], bias[:, 1::2]), 1))
    # And the network with those numbers in it says the same.
    with torch.no_grad():
        for name, values in worth.items():
            network.get_parameter(name).copy_(values.transpose(1, 2))
        ids = list(range(3, 20))
        wanted = network(torch.tensor([ids])).logits[0]
    if dtype == torch.float32:
        found = Paged(loaded.model, [ids]).step({0: len(ids)})[0]
        torch.testing.assert_close(found, wanted, atol=1e-3, rtol=1e-4)


@pytest.mark.parametrize("quantised", [False, True])
def test_parts_of_an_experts_tensor_are_those_of_the_whole(quantised, tmp_path) -> None:
    make(tmp_path, **SIZES)
    if quantised:
        in_mxfp4(tmp_path)
    source = StackedSource(SafetensorsSource(tmp_path))
    assert not [name for name in source.entries if "_blocks" in name or "gate_up" in name]
    for name, entry in source.entries.items():
        whole = source.read(name)
        assert whole.shape == entry.shape
        for dim, size in enumerate(entry.shape):
            for start, length in ((0, size), (size // 2, size - size // 2), (size // 3, 1)):
                cut = Cut(dim, start, length, size)
                assert torch.equal(source.read(name, cut), whole.narrow(dim, start, length))
    read = sum(entry.bytes for entry in source.entries.values())
    assert read == sum(entry.bytes for entry in SafetensorsSource(tmp_path).entries.values())


def test_what_is_wrong_with_a_stack_is_named(tmp_path) -> None:
    make(tmp_path, **SIZES)
    in_mxfp4(tmp_path)
    good = load_file(tmp_path / "model.safetensors")
    name = f"{EXPERTS.format(0)}.gate_up_proj"
    faults = {
        "beside it": {**good, f"{name}_scales": good[f"{name}_scales"][:, 1:].contiguous()},
        "16 bytes a block": {
            **good,
            f"{name}_blocks": good[f"{name}_blocks"][..., :8].contiguous(),
        },
        "4 dimensions": {**good, f"{name}_blocks": good[f"{name}_blocks"].flatten(2)},
        "2 dimensions": {**good, f"{name}_bias": good[f"{name}_bias"].flatten()},
        "rows of gate as of up": {**good, f"{name}_bias": good[f"{name}_bias"][:, 1:].contiguous()},
    }
    del (without := dict(good))[f"{name}_scales"]
    faults["under ..._scales"] = without
    for said, tensors in faults.items():
        save_file(tensors, tmp_path / "model.safetensors", {"format": "pt"})
        with pytest.raises(ConfigError, match=said):
            load(tmp_path, device="cpu", dtype=torch.float32, ops=reference_ops())
    del (without := dict(good))[f"{name}_bias"]
    save_file(without, tmp_path / "model.safetensors", {"format": "pt"})
    with pytest.raises(ConfigError, match=r"wanted the tensor '.*experts\.0\.gate_proj\.bias'"):
        load(tmp_path, device="cpu", dtype=torch.float32, ops=reference_ops())
