"""The engine of `task: embed` against transformers: MiniLM itself, and a tiny causal model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tests.plugins.engines.cuda.driving import engine, run  # noqa: E402
from tests.plugins.engines.cuda.load.checkpoints import tiny  # noqa: E402
from tests.plugins.engines.cuda.load.test_adapters import SHAPES, adapter, merged  # noqa: E402
from tests.plugins.engines.reference.tiny import tiny_llama  # noqa: E402
from tokenwire.core.errors import ConfigError  # noqa: E402
from tokenwire.core.host import lone_services  # noqa: E402
from tokenwire.core.token_ids import TokenIds  # noqa: E402
from tokenwire.core.tokens import Adapter, TokenJob  # noqa: E402
from tokenwire.plugins.engines.cuda.build import build_here  # noqa: E402
from tokenwire.plugins.engines.cuda.settings import CudaSettings  # noqa: E402

pytestmark = pytest.mark.torch

TEXTS = (
    "The sea was calm.",
    "The ocean lay still.",
    "Interest rates rose again by a quarter of a point, to nobody's surprise.",
    "Sea",
)


def vectors(made, *prompts, adapters=()):
    jobs = [
        TokenJob(
            f"j{k}",
            "m",
            TokenIds(ids),
            task="embed",
            adapter=Adapter(adapters[k]) if adapters and adapters[k] else None,
        )
        for k, ids in enumerate(prompts)
    ]
    found = run(made, *jobs)
    for (name, _), answer in found.items():
        assert answer.finish.kind.value == "stop", (name, answer.finish)
    return torch.tensor([found[each.job, 0].deltas[0].vectors[0] for each in jobs])


def ids_of(folder: Path, texts):
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder))
    return [tokenizer(text)["input_ids"] for text in texts]


def states(network, ids):
    with torch.no_grad():
        return network(torch.tensor([ids]), output_hidden_states=True).hidden_states[-1][0]


def unit(rows):
    return torch.nn.functional.normalize(torch.stack(rows), dim=-1)


def test_minilm_equals_transformers_whatever_runs_beside_it(minilm: Path) -> None:
    prompts = ids_of(minilm, TEXTS)
    made = engine(minilm, task="embed")
    card = made.status().card
    assert (card.tasks, card.embedding_size, card.context_length) == (("embed",), 384, 256)
    together = vectors(made, *prompts)
    network = transformers.AutoModel.from_pretrained(minilm, dtype=torch.float32).eval()
    with torch.no_grad():
        means = [network(torch.tensor([each])).last_hidden_state[0].mean(0) for each in prompts]
    torch.testing.assert_close(together, unit(means), atol=1e-5, rtol=0)
    for size in (1, 2):
        other = vectors(engine(minilm, task="embed", max_batch_size=size), *prompts)
        torch.testing.assert_close(other, together, atol=1e-6, rtol=0)
    likeness = together @ together.T
    assert likeness[0, 1] > 0.5 > 0.3 > likeness[0, 2]


@pytest.mark.parametrize(("pooling", "row"), [("auto", -1), ("last", -1), ("cls", 0)])
def test_pooling_is_the_checkpoints_or_as_set(pooling, row, tmp_path) -> None:
    network = tiny(tmp_path / "base", "Qwen2")
    prompts = [[5, 6, 7, 8], [9], [3, 4] * 9]
    made = engine(tmp_path / "base", task="embed", pooling=pooling)
    found = vectors(made, *prompts)
    wanted = unit([states(network, ids)[row] for ids in prompts])
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=0)


def test_mean_pooling_of_a_causal_model(tmp_path) -> None:
    network = tiny(tmp_path / "base", "Qwen2")
    found = vectors(engine(tmp_path / "base", task="embed", pooling="mean"), [5, 6, 7, 8])
    wanted = unit([states(network, [5, 6, 7, 8]).mean(0)])
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=0)


def test_every_job_has_its_own_adapter(tmp_path) -> None:
    network = tiny(tmp_path / "base", "Qwen2")
    folder = adapter(tmp_path / "a", SHAPES, r=3, seed=2)
    made = engine(tmp_path / "base", task="embed", adapters={"a": str(folder)})
    assert made.status().card.can("adapter")
    prompt = [5, 6, 7, 8]
    found = vectors(made, prompt, prompt, [9, 8], adapters=("", "a", "a"))
    changed = merged(network, folder, 6 / 3)
    wanted = [
        states(each, ids)[-1]
        for each, ids in ((network, prompt), (changed, prompt), (changed, [9, 8]))
    ]
    torch.testing.assert_close(found, unit(wanted), atol=1e-4, rtol=0)


def test_settings_that_do_not_fit_are_named(minilm: Path, tmp_path) -> None:
    with pytest.raises(ConfigError, match="max_model_len is 9999"):
        engine(minilm, task="embed", max_model_len=9999)
    with pytest.raises(ConfigError, match="is an encoder, which takes none"):
        engine(minilm, task="embed", adapters={"a": str(tmp_path)})
    with pytest.raises(ConfigError, match="wanted one of"):
        engine(minilm, task="embed", pooling="max")
    assert engine(minilm, task="embed", max_model_len=9).status().card.context_length == 9


def test_a_poisoned_text_ends_alone(minilm: Path, tmp_path) -> None:
    from safetensors.torch import load_file, save_file

    folder = tmp_path / "poisoned"
    folder.mkdir()
    for file in minilm.glob("*"):
        if file.is_file() and file.suffix in (".json", ".txt"):
            (folder / file.name).write_bytes(file.read_bytes())
    (folder / "1_Pooling").mkdir()
    pooling = (minilm / "1_Pooling" / "config.json").read_text()
    assert json.loads(pooling)["pooling_mode_mean_tokens"]
    (folder / "1_Pooling" / "config.json").write_text(pooling)
    tensors = load_file(minilm / "model.safetensors")
    words = next(name for name in tensors if name.endswith("word_embeddings.weight"))
    tensors[words][2003] = torch.nan
    save_file(tensors, folder / "model.safetensors")
    jobs = [
        TokenJob(name, "m", TokenIds(ids), task="embed")
        for name, ids in (("a", [101, 5000, 102]), ("b", [101, 2003, 7, 102]), ("c", [101, 102]))
    ]
    found = run(engine(folder, task="embed"), *jobs)
    ends = {name: answer.finish.cause.value for (name, _), answer in found.items()}
    assert ends == {"a": "eos", "b": "internal", "c": "eos"}


def test_weights_that_do_not_fit_are_named_with_their_size(monkeypatch) -> None:
    from tokenwire.plugins.engines.cuda import embedding_build

    def full(*arguments, **fields):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(embedding_build, "load_embedder", full)
    words = rf"{tiny_llama().name} wants 0\.00 GiB, .* free on cpu: take a smaller checkpoint"
    with pytest.raises(ConfigError, match=words):
        engine(task="embed")


@pytest.mark.parametrize("task", ["embed", "generate"])
def test_who_waits_for_the_weights_is_told_of_them(task) -> None:
    """A group whose ranks say nothing while they load would be taken for one that failed."""
    told = []
    chosen = CudaSettings(path=str(tiny_llama()), device="cpu", kv_gib=0.01, task=task)
    build_here(chosen, lone_services(), told=lambda done, total: told.append((done, total)))
    assert len(told) > 2
    assert told[-1][0] == told[-1][1]
