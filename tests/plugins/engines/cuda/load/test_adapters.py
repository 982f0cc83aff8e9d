"""LoRA: each token with its own adapter equals the same weights merged."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from safetensors.torch import save_file  # noqa: E402

from tests.plugins.engines.cuda.load.checkpoints import VOCABULARY, tiny  # noqa: E402
from tests.plugins.engines.cuda.models.paged import Paged, reference_ops  # noqa: E402
from tokenwire.core.errors import ConfigError  # noqa: E402
from tokenwire.plugins.engines.cuda.load import (  # noqa: E402
    load,
    put_adapter,
    read_adapter,
    remove_adapter,
)

pytestmark = pytest.mark.torch

CLOSE = 1e-4
SHAPES = {
    "self_attn.q_proj": (32, 32),
    "self_attn.k_proj": (16, 32),
    "self_attn.v_proj": (16, 32),
    "self_attn.o_proj": (32, 32),
    "mlp.gate_proj": (48, 32),
    "mlp.up_proj": (48, 32),
    "mlp.down_proj": (32, 48),
}


def adapter(folder: Path, modules, *, r: int, seed: int, **config) -> Path:
    folder.mkdir()
    torch.manual_seed(seed)
    tensors = {}
    for layer in range(2):
        for module in modules:
            outputs, inputs = SHAPES[module]
            name = f"base_model.model.model.layers.{layer}.{module}"
            tensors[f"{name}.lora_A.weight"] = torch.randn(r, inputs) * 0.3
            tensors[f"{name}.lora_B.weight"] = torch.randn(outputs, r) * 0.3
    save_file(tensors, folder / "adapter_model.safetensors")
    fields = {"peft_type": "LORA", "r": r, "lora_alpha": 6, "bias": "none", **config}
    fields["target_modules"] = [module.rpartition(".")[2] for module in modules]
    (folder / "adapter_config.json").write_text(json.dumps(fields))
    return folder


def merged(network, folder: Path, scale: float):
    """Logits of the network with the adapter's product added to its weights."""
    import copy

    from safetensors.torch import load_file

    network = copy.deepcopy(network)
    tensors = load_file(folder / "adapter_model.safetensors")
    modules = dict(network.named_modules())
    with torch.no_grad():
        for name, a in tensors.items():
            if ".lora_A." in name:
                module = name.removeprefix("base_model.model.").removesuffix(".lora_A.weight")
                b = tensors[name.replace("lora_A", "lora_B")]
                modules[module].weight += scale * (b @ a)
    return network


def test_every_token_has_its_own_adapter(tmp_path) -> None:
    network = tiny(tmp_path / "base", "Qwen2")
    first = adapter(tmp_path / "a", SHAPES, r=3, seed=2)
    second = adapter(
        tmp_path / "b", ["self_attn.v_proj", "mlp.up_proj"], r=4, seed=3, use_rslora=True
    )
    model = load(tmp_path / "base", device="cpu", dtype=torch.float32, ops=reference_ops()).model
    model.reserve_adapters(3, 4)
    put_adapter(model, 1, read_adapter(first))
    put_adapter(model, 3, read_adapter(second))
    networks = [network, merged(network, first, 6 / 3), merged(network, second, 6 / math.sqrt(4))]
    slots = {0: 0, 1: 1, 2: 3}
    sequences = [torch.randint(VOCABULARY, (12,)).tolist() for _ in slots]
    paged = Paged(model, sequences)
    found = {each: [] for each in slots}
    for counts in ({0: 5, 1: 3, 2: 1}, {0: 1, 1: 8, 2: 10}, {0: 6, 1: 1, 2: 1}):
        for each, logits in paged.step(counts, slots).items():
            found[each].append(logits)
    for each, sequence in enumerate(sequences):
        with torch.no_grad():
            wanted = networks[each](torch.tensor([sequence])).logits[0]
        torch.testing.assert_close(torch.cat(found[each]), wanted, atol=CLOSE, rtol=CLOSE)


def test_a_removed_or_replaced_adapter_leaves_nothing(tmp_path) -> None:
    network = tiny(tmp_path / "base")
    model = load(tmp_path / "base", device="cpu", dtype=torch.float32, ops=reference_ops()).model
    model.reserve_adapters(1, 4)
    ids = list(range(10))

    def logits(slot):
        return Paged(model, [ids]).step({0: 10}, {0: slot})[0]

    plain = logits(0)
    put_adapter(model, 1, read_adapter(adapter(tmp_path / "a", SHAPES, r=4, seed=2)))
    assert not torch.allclose(logits(1), plain)
    assert torch.equal(logits(0), plain)
    small = adapter(tmp_path / "b", ["mlp.down_proj"], r=2, seed=4, alpha_pattern={"down_proj": 5})
    put_adapter(model, 1, read_adapter(small))
    with torch.no_grad():
        wanted = merged(network, small, 5 / 2)(torch.tensor([ids])).logits[0]
    torch.testing.assert_close(logits(1), wanted, atol=CLOSE, rtol=CLOSE)
    remove_adapter(model, 1)
    assert torch.equal(logits(1), plain)


def test_adapters_that_do_not_fit_are_named(tmp_path) -> None:
    tiny(tmp_path / "base", intermediate_size=40)
    model = load(tmp_path / "base", device="cpu", dtype=torch.float32, ops=reference_ops()).model
    model.reserve_adapters(1, 4)
    wide = read_adapter(adapter(tmp_path / "a", ["mlp.up_proj"], r=4, seed=2))
    with pytest.raises(ConfigError, match=r"up_proj'.*wanted \[32, 40\].*got \[32, 48\]"):
        put_adapter(model, 1, wide)
    high = read_adapter(adapter(tmp_path / "b", ["self_attn.q_proj"], r=8, seed=2))
    with pytest.raises(ConfigError, match=r"a rank up to 4, got .* and 8"):
        put_adapter(model, 1, high)
    with pytest.raises(ConfigError, match="slot 2: wanted 1 to 1"):
        put_adapter(model, 2, read_adapter(adapter(tmp_path / "c", SHAPES, r=1, seed=2)))
    with pytest.raises(ConfigError, match="use_dora: wanted none"):
        read_adapter(adapter(tmp_path / "d", SHAPES, r=1, seed=2, use_dora=True))
    with pytest.raises(ConfigError, match=r"adapter_config\.json"):
        read_adapter(tmp_path / "nowhere")
    odd = adapter(tmp_path / "e", SHAPES, r=1, seed=2)
    save_file(
        {"base_model.model.lm_head.weight": torch.zeros(2, 2)}, odd / "adapter_model.safetensors"
    )
    with pytest.raises(ConfigError, match=r"lm_head\.weight.*cannot be adapted"):
        read_adapter(odd)
