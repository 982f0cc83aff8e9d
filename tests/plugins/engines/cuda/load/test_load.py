"""Loading safetensors: shards, casts, progress, read-only folders, and what each fault is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from safetensors.torch import load_file, save_file  # noqa: E402

from tests.plugins.engines.cuda.load.checkpoints import VOCABULARY, tiny  # noqa: E402
from tests.plugins.engines.cuda.models.paged import Paged, reference_ops  # noqa: E402
from tokenwire.core.errors import ConfigError  # noqa: E402
from tokenwire.plugins.engines.cuda.load import load, load_config  # noqa: E402

pytestmark = pytest.mark.torch

IDS = list(range(1, 20))
WEIGHTS = "model.safetensors"


def loaded(folder: Path, **changes):
    options = {"device": "cpu", "dtype": torch.float32, "ops": reference_ops(), **changes}
    return load(folder, **options)


def logits(model):
    return Paged(model, [IDS]).step({0: len(IDS)})[0]


def edit(folder: Path, change) -> None:
    tensors = load_file(folder / WEIGHTS)
    change(tensors)
    save_file(tensors, folder / WEIGHTS, {"format": "pt"})


def test_shards_and_one_file_give_the_same(tmp_path) -> None:
    tiny(tmp_path / "one")
    tiny(tmp_path / "many", shard="10KB")
    assert len(list((tmp_path / "many").glob("*.safetensors"))) > 3
    wanted = logits(loaded(tmp_path / "one").model)
    assert torch.equal(logits(loaded(tmp_path / "many", threads=3).model), wanted)


def test_progress_counts_every_byte_once(tmp_path) -> None:
    network = tiny(tmp_path, shard="10KB")
    seen: list[tuple[int, int]] = []
    found = loaded(tmp_path, progress=lambda done, total: seen.append((done, total)), threads=4)
    total = sum(each.numel() * 4 for each in network.parameters())
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})
    assert seen[-1] == (total, total)
    assert found.bytes == total
    assert found.seconds > 0


def test_the_dtype_is_the_checkpoint_s_unless_another_is_asked_for(tmp_path) -> None:
    network = tiny(tmp_path)
    network.to(torch.bfloat16).save_pretrained(tmp_path)
    assert load_config(tmp_path).dtype == "bfloat16"
    for asked, wanted in ((None, torch.bfloat16), (torch.float16, torch.float16)):
        model = loaded(tmp_path, dtype=asked).model
        assert {place.dtype for place in model.places.values()} == {wanted}
        weight = network.model.layers[0].mlp.up_proj.weight.to(wanted)
        assert torch.equal(model.places["model.layers.0.mlp.up_proj.weight"], weight)


def test_fused_weights_are_filled_in_place_and_tied_ones_once(tmp_path) -> None:
    network = tiny(tmp_path, tie_word_embeddings=True)
    found = loaded(tmp_path)
    attention = network.model.layers[1].self_attn
    parts = [getattr(attention, f"{each}_proj").weight for each in "qkv"]
    assert torch.equal(found.model.blocks[1].attention.qkv.weight, torch.cat(parts))
    assert found.model.head is not None
    assert found.model.head.weight.data_ptr() == found.model.embedding.data_ptr()
    assert found.bytes == sum(each.numel() * 4 for each in network.parameters())


def test_a_tied_head_in_the_file_is_passed_over(tmp_path) -> None:
    tiny(tmp_path, tie_word_embeddings=True)
    wanted = logits(loaded(tmp_path).model)
    edit(tmp_path, lambda each: each.update({"lm_head.weight": torch.zeros(VOCABULARY, 32)}))
    assert torch.equal(logits(loaded(tmp_path).model), wanted)


def test_a_read_only_folder_will_do(tmp_path) -> None:
    tiny(tmp_path / "model")
    files = list((tmp_path / "model").iterdir())
    try:
        for file in files:
            file.chmod(0o444)
        (tmp_path / "model").chmod(0o555)
        before = {file: file.stat().st_mtime_ns for file in files}
        loaded(tmp_path / "model")
        assert {file: file.stat().st_mtime_ns for file in files} == before
        assert sorted((tmp_path / "model").iterdir()) == sorted(files)
    finally:
        (tmp_path / "model").chmod(0o755)


def test_names_of_other_forms_of_the_same_checkpoint(tmp_path) -> None:
    """A multimodal model's, an embedding model's, an old one's."""
    tiny(tmp_path)
    wanted = logits(loaded(tmp_path).model)
    plain = load_file(tmp_path / WEIGHTS)
    inner = {name.replace("model.", "model.language_model.", 1): t for name, t in plain.items()}
    older = {f"language_model.{name}": t for name, t in plain.items()}
    for form in (inner, {**older, "vision_tower.x": torch.zeros(1)}):
        save_file(form, tmp_path / WEIGHTS)
        assert torch.equal(logits(loaded(tmp_path).model), wanted)
    old = {**plain, "model.layers.0.self_attn.rotary_emb.inv_freq": torch.zeros(4)}
    save_file(old, tmp_path / WEIGHTS)
    assert torch.equal(logits(loaded(tmp_path).model), wanted)


Q = "model.layers.0.self_attn.q_proj.weight"


def drop(tensors) -> None:
    del tensors[Q]


def reshape(tensors) -> None:
    tensors[Q] = torch.zeros(31, 32)


def quantise(tensors) -> None:
    tensors[Q] = tensors[Q].to(torch.int8)


def add(tensors) -> None:
    tensors["model.layers.2.extra.weight"] = torch.zeros(3, 4)


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        (drop, (WEIGHTS, repr(Q), r"\[32, 32\]", "not there", "1 of 21")),
        (quantise, (WEIGHTS, repr(Q), "wanted numbers of floating point", "got I8")),
        (reshape, (WEIGHTS, repr(Q), r"wanted the shape \[32, 32\]", r"got \[31, 32\]")),
        (add, (WEIGHTS, "model.layers.2.extra.weight", r"\[3, 4\]", "unknown")),
    ],
)
def test_a_tensor_at_fault_is_named(tmp_path, change, parts) -> None:
    tiny(tmp_path)
    edit(tmp_path, change)
    with pytest.raises(ConfigError, match=".*".join(parts)):
        loaded(tmp_path)


def test_a_truncated_file_is_named(tmp_path) -> None:
    tiny(tmp_path)
    whole = (tmp_path / WEIGHTS).read_bytes()
    for length in (len(whole) - 1, len(whole) // 2, 100, 3, 0):
        (tmp_path / WEIGHTS).write_bytes(whole[:length])
        with pytest.raises(ConfigError, match=r"model\.safetensors: wanted a whole.*cut short"):
            loaded(tmp_path)


def test_a_missing_shard_is_named(tmp_path) -> None:
    tiny(tmp_path, shard="10KB")
    gone = sorted(tmp_path.glob("*.safetensors"))[1]
    gone.unlink()
    with pytest.raises(ConfigError, match=rf"index\.json names .*{gone.name}.*not whole"):
        loaded(tmp_path)


def test_an_unknown_architecture_is_told_the_known_ones(tmp_path) -> None:
    tiny(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "architectures": ["T5Model"]}))
    with pytest.raises(ConfigError, match=r"LlamaForCausalLM, .*Gemma3.*got \['T5Model'\]"):
        loaded(tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden_size": "wide"}, "config.json: hidden_size: Expected `int`, got `str`"),
        ({"hidden_size": None}, "wanted the field 'hidden_size'"),
        ({"hidden_act": "relu"}, "hidden_act: wanted one of silu.*got 'relu'"),
        (
            {"rope_parameters": {"rope_type": "longrope", "rope_theta": 1e4}},
            "rope_parameters: wanted the rope type default.*got 'longrope'",
        ),
        ({"quantization_config": {"quant_method": "awq"}}, "quant_method 'fp8'.*got 'awq'"),
    ],
)
def test_a_config_at_fault_is_named(tmp_path, changes, message) -> None:
    tiny(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, **changes}))
    with pytest.raises(ConfigError, match=message):
        load_config(tmp_path)


def test_folders_without_a_model_say_what_should_be_there(tmp_path) -> None:
    with pytest.raises(ConfigError, match=r"config\.json and"):
        loaded(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match=r"wanted a folder with a config\.json"):
        loaded(tmp_path)
    tiny(tmp_path)
    (tmp_path / WEIGHTS).unlink()
    with pytest.raises(ConfigError, match="there are none"):
        loaded(tmp_path)


def test_end_ids_come_from_the_generation_config(tmp_path) -> None:
    tiny(tmp_path, eos_token_id=5)
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": [7, 9]}')
    assert load_config(tmp_path).eos_ids == (7, 9)
    (tmp_path / "generation_config.json").unlink()
    assert load_config(tmp_path).eos_ids == (5,)


def test_configs_are_read_without_torch() -> None:
    import subprocess
    import sys

    program = (
        "import sys; import tokenwire.plugins.engines.cuda.models.families as f;"
        "import tokenwire.plugins.engines.cuda.models.pooling;"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
