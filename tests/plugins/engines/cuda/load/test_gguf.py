"""GGUF files as llama.cpp's converter writes them: their networks equal the ones they came from."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
gguf = pytest.importorskip("gguf")

from tests.plugins.engines.cuda.load.checkpoints import tiny  # noqa: E402
from tests.plugins.engines.cuda.models.paged import Paged, reference_ops  # noqa: E402
from tokenwire.core.errors import ConfigError  # noqa: E402
from tokenwire.plugins.engines.cuda.load import load, load_config  # noqa: E402

pytestmark = pytest.mark.torch

CLOSE = 1e-4
IDS = list(range(2, 31))
NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}
GEMMA = {
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}
TOP = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}


def their_name(name: str, architecture: str) -> str:
    module, _, suffix = name.rpartition(".")
    if module in TOP:
        return f"{TOP[module]}.{suffix}"
    layer, _, part = module.removeprefix("model.layers.").partition(".")
    names = {**NAMES, **(GEMMA if architecture == "gemma3" else {})}
    return f"blk.{layer}.{names[part]}.{suffix}"


def write(
    path: Path, network, architecture: str, *, kinds=(), divisors=None, vocabulary=None
) -> Path:
    """`kinds`: endings of tensors' names -> the type they are quantised to. `vocabulary` is called
    with the writer."""
    config = network.config
    writer = gguf.GGUFWriter(str(path), architecture)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    head_dim = getattr(config, "head_dim", None) or 8
    writer.add_key_length(head_dim)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    ropes = config.rope_parameters
    writer.add_rope_freq_base(ropes.get("full_attention", ropes)["rope_theta"])
    if architecture == "gemma3":
        writer.add_sliding_window(config.sliding_window)
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(ropes["full_attention"].get("factor", 1.0))
    writer.add_eos_token_id(3)
    if vocabulary is not None:
        vocabulary(writer)
    for name, parameter in network.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        values = parameter.float()
        heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
        for module, count in heads.items():
            if architecture == "llama" and f".{module}." in name:
                rows = values.shape[0] // count // 2
                values = values.view(count, 2, rows, *values.shape[1:]).transpose(1, 2)
                values = values.reshape(parameter.shape)
        if architecture == "gemma3" and "norm" in name:
            values = values + 1
        theirs = their_name(name, architecture)
        kind = next((kind for ending, kind in kinds if theirs.endswith(ending)), None)
        data = values.contiguous().numpy()
        if kind is not None:
            data = gguf.quantize(data, kind)
        writer.add_tensor(theirs, data, raw_dtype=kind)
    if divisors is not None:
        writer.add_tensor("rope_freqs.weight", divisors.numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def loaded(path: Path):
    return load(path, device="cpu", dtype=torch.float32, ops=reference_ops())


def logits(model):
    return Paged(model, [IDS]).step({0: len(IDS)})[0]


def oracle(network):
    with torch.no_grad():
        return network(torch.tensor([IDS])).logits[0]


GEMMA_SIZES = {
    "head_dim": 8,
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


@pytest.mark.parametrize(
    ("kind", "architecture", "sizes"),
    [
        ("Llama", "llama", {}),
        ("Llama", "llama", {"tie_word_embeddings": True, "head_dim": 16}),
        ("Mistral", "llama", {"sliding_window": None}),
        ("Qwen2", "qwen2", {}),
        ("Qwen3", "qwen3", {"head_dim": 16}),
        ("Gemma3", "gemma3", GEMMA_SIZES),
    ],
)
def test_every_architecture_equals_its_origin(kind, architecture, sizes, tmp_path) -> None:
    network = tiny(tmp_path / "origin", kind, **sizes)
    found = loaded(write(tmp_path / "model.gguf", network, architecture))
    assert found.config.eos_ids == (3,)
    torch.testing.assert_close(logits(found.model), oracle(network), atol=CLOSE, rtol=CLOSE)


def test_quantised_tensors_are_what_their_bytes_say(tmp_path) -> None:
    network = tiny(tmp_path / "origin", hidden_size=64, intermediate_size=96)
    types = gguf.GGMLQuantizationType
    kinds = [("ffn_down.weight", types.Q8_0), ("attn_q.weight", types.Q4_0)]
    kinds += [("ffn_up.weight", types.BF16), ("output.weight", types.F16)]
    model = loaded(write(tmp_path / "model.gguf", network, "llama", kinds=kinds)).model
    with torch.no_grad():
        for name, place in model.places.items():
            network.get_parameter(name).copy_(place)
    torch.testing.assert_close(logits(model), oracle(network), atol=CLOSE, rtol=CLOSE)
    fresh = tiny(tmp_path / "again", hidden_size=64, intermediate_size=96)
    near = (fresh.get_parameter("model.layers.0.mlp.down_proj.weight"), 0.02)
    far = (fresh.get_parameter("model.layers.0.self_attn.q_proj.weight"), 0.3)
    for (wanted, most), name in zip(
        (near, far), ("mlp.down_proj", "self_attn.q_proj"), strict=True
    ):
        found = model.places[f"model.layers.0.{name}.weight"]
        assert 0 < (found - wanted).abs().max() < most


def test_llama_3_s_divisors_are_its_rope_scaling(tmp_path) -> None:
    scaling = {
        "rope_type": "llama3",
        "rope_theta": 1000.0,
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 16,
    }
    network = tiny(tmp_path / "origin", head_dim=16, rope_parameters=scaling)
    plain = 1.0 / 1000.0 ** (torch.arange(0, 16, 2) / 16)
    divisors = plain / network.model.rotary_emb.inv_freq
    assert divisors.max() > 2
    path = write(tmp_path / "model.gguf", network, "llama", divisors=divisors)
    torch.testing.assert_close(logits(loaded(path).model), oracle(network), atol=CLOSE, rtol=CLOSE)


def test_a_folder_with_one_file_will_do_and_one_with_two_asks_which(tmp_path) -> None:
    network = tiny(tmp_path / "origin")
    folder = tmp_path / "folder"
    folder.mkdir()
    write(folder / "a.gguf", network, "llama")
    assert load_config(folder).family == "llama"
    (folder / "b.gguf").write_bytes((folder / "a.gguf").read_bytes())
    with pytest.raises(ConfigError, match=r"a\.gguf, b\.gguf: set `path` to one of them"):
        load_config(folder)
    assert load_config(folder / "b.gguf").family == "llama"


def test_an_unknown_architecture_is_told_the_known_ones(tmp_path) -> None:
    path = write(tmp_path / "model.gguf", tiny(tmp_path / "origin"), "falcon")
    with pytest.raises(ConfigError, match="wanted one of llama, qwen2, qwen3, gemma3, got 'falc"):
        load_config(path)


def test_a_truncated_file_is_named(tmp_path) -> None:
    path = write(tmp_path / "model.gguf", tiny(tmp_path / "origin"), "llama")
    whole = path.read_bytes()
    for length in (len(whole) - 100, len(whole) // 2, 200, 10):
        path.write_bytes(whole[:length])
        with pytest.raises(ConfigError, match=r"model\.gguf: wanted a whole GGUF.*cut short"):
            load_config(path)
