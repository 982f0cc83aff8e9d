"""Embedders: a real BERT and pooled causal models, against transformers' hidden states."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tests.plugins.engines.cuda.models.paged import reference_ops  # noqa: E402
from tokenwire.core.errors import ConfigError  # noqa: E402
from tokenwire.plugins.engines.cuda.layers.packed import pack  # noqa: E402
from tokenwire.plugins.engines.cuda.load import load_embedder  # noqa: E402
from tokenwire.plugins.engines.cuda.models.pooling import (  # noqa: E402
    PoolingSpec,
    read_pooling,
)

pytestmark = pytest.mark.torch

CLOSE = 1e-5
TEXTS = (
    "The sea was calm.",
    "The ocean lay still.",
    "Interest rates rose again by a quarter of a point, to nobody's surprise.",
    "Sea",
)


def embedder(folder: Path):
    return load_embedder(folder, device="cpu", dtype=torch.float32, ops=reference_ops())


def modules(folder: Path, mode: str, *, normalise: bool) -> None:
    """sentence-transformers' files."""
    types = ["Transformer", "Pooling", *(["Normalize"] if normalise else [])]
    listed = [
        {"idx": index, "path": f"{index}_{kind}", "type": f"sentence_transformers.models.{kind}"}
        for index, kind in enumerate(types)
    ]
    (folder / "modules.json").write_text(json.dumps(listed))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(
        json.dumps({"word_embedding_dimension": 32, mode: True, "pooling_mode_max_tokens": False})
    )


def test_minilm_equals_transformers(minilm: Path) -> None:
    from tokenizers import Tokenizer

    text = Tokenizer.from_file(str(minilm / "tokenizer.json"))
    text.no_padding()
    ids = [text.encode(each).ids for each in TEXTS]
    loaded = embedder(minilm)
    assert (loaded.dimensions, loaded.context_length, loaded.vocab_size) == (384, 256, 30522)
    found = loaded.embedder.embed(pack(ids, "cpu"))
    network = transformers.AutoModel.from_pretrained(minilm, dtype=torch.float32).eval()
    with torch.no_grad():
        means = [network(torch.tensor([each])).last_hidden_state[0].mean(0) for each in ids]
    wanted = torch.nn.functional.normalize(torch.stack(means), dim=-1)
    torch.testing.assert_close(found, wanted, atol=CLOSE, rtol=0)
    likeness = found @ found.T
    assert likeness[0, 1] > 0.5 > 0.3 > likeness[0, 2]
    alone = loaded.embedder.embed(pack(ids[:1], "cpu"))
    torch.testing.assert_close(alone[0], found[0], atol=CLOSE, rtol=0)


@pytest.mark.parametrize(
    ("mode", "normalise"),
    [("pooling_mode_lasttoken", True), ("pooling_mode_mean_tokens", False), (None, True)],
)
@pytest.mark.parametrize("kind", ["Qwen3", "Gemma3"])
def test_pooled_causal_models_equal_transformers(kind, mode, normalise, tmp_path) -> None:
    torch.manual_seed(0)
    text = "Text" if kind == "Gemma3" else ""
    config = getattr(transformers, f"{kind}{text}Config")(
        vocab_size=80,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        initializer_range=0.2,
        max_position_embeddings=64,
        tie_word_embeddings=False,
        **(
            {"sliding_window": 5, "layer_types": ["sliding_attention", "full_attention"]}
            if text
            else {}
        ),
    )
    network = getattr(transformers, f"{kind}{text}Model")(config).eval()
    network.save_pretrained(tmp_path)
    if mode is not None:
        modules(tmp_path, mode, normalise=normalise)
    ids = [torch.randint(80, (length,)).tolist() for length in (3, 17, 1, 33)]
    found = embedder(tmp_path).embedder.embed(pack(ids, "cpu"))
    with torch.no_grad():
        hidden = [network(torch.tensor([each])).last_hidden_state[0] for each in ids]
    mean = mode == "pooling_mode_mean_tokens"
    wanted = torch.stack([each.mean(0) if mean else each[-1] for each in hidden])
    if normalise:
        wanted = torch.nn.functional.normalize(wanted, dim=-1)
    torch.testing.assert_close(found, wanted, atol=CLOSE, rtol=1e-4)


def test_an_empty_text_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one token"):
        pack([[1], []], "cpu")


def test_what_it_cannot_pool_is_named(tmp_path) -> None:
    assert read_pooling(tmp_path, "last") == PoolingSpec("last")
    modules(tmp_path, "pooling_mode_weightedmean_tokens", normalise=True)
    with pytest.raises(ConfigError, match="pooling_mode_weightedmean_tokens"):
        read_pooling(tmp_path, "mean")
    (tmp_path / "modules.json").write_text(
        json.dumps([{"path": "2_Dense", "type": "sentence_transformers.models.Dense"}])
    )
    with pytest.raises(ConfigError, match=r"modules\.json.*got Dense"):
        read_pooling(tmp_path, "mean")
