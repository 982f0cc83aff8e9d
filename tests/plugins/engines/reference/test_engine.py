"""The reference engine on a tiny Llama: equal to transformers, and clear when it cannot start."""

from __future__ import annotations

import asyncio
import importlib.util
import logging
from pathlib import Path

import pytest

from tests.plugins.engines.reference.tiny import VOCABULARY, tiny_llama
from tokenwire.core.checkpoint import Checkpoint
from tokenwire.core.errors import ConfigError
from tokenwire.core.factory import Services
from tokenwire.core.host import lone_services
from tokenwire.core.ports.tokenizer import NO_SHIELDS, Tokenizer, Vocabulary
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import (
    Counts,
    JobSampling,
    JobStopping,
    LogprobSettings,
    TokenDelta,
    TokenJob,
)
from tokenwire.plugins.engines.reference import register_engines
from tokenwire.plugins.engines.reference.build import build
from tokenwire.plugins.engines.reference.settings import ReferenceSettings

PROMPT = [5, 17, 99, 42, 42, 7]
GREEDY = JobSampling(temperature=0.0)


class Smaller(Tokenizer):
    """A tokenizer that knows fewer ids than the model has."""

    vocabulary = Vocabulary(size=100, eos_ids=(3,), fingerprints={"vocabulary": "v"})

    def encode(self, text, shields=NO_SHIELDS):
        return TokenIds(list(text.encode()))

    def token_bytes(self, id):
        return bytes((id,))


def job(**fields) -> TokenJob:
    base = {
        "job": "j",
        "model": "m",
        "prompt": TokenIds(PROMPT),
        "sampling": GREEDY,
        "stopping": JobStopping(max_tokens=16, ignore_eos=True),
    }
    return TokenJob(**(base | fields))


def run(task: TokenJob, services: Services | None = None, **settings) -> list[TokenDelta]:
    async def go() -> list[TokenDelta]:
        made = ReferenceSettings(**({"path": str(tiny_llama())} | settings))
        engine = build(made, services or lone_services())
        engine.submit([task])
        found: list[TokenDelta] = []
        async for batch in engine.batches():
            found += batch
            if any(delta.finish is not None for delta in batch):
                break
        await engine.drain(0)
        return found

    return asyncio.run(go())


def ids(deltas: list[TokenDelta]) -> list[int]:
    return [id for delta in deltas for id in delta.ids]


@pytest.mark.torch
def test_greedy_ids_equal_transformers() -> None:
    deltas = run(job())
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(tiny_llama())
    wanted = model.generate(
        torch.tensor([PROMPT]), max_new_tokens=16, do_sample=False, eos_token_id=None
    )
    assert ids(deltas) == wanted[0].tolist()[len(PROMPT) :]
    assert deltas[-1].counts == Counts(prompt=6, cached=0, computed=6, generated=16)


@pytest.mark.torch
def test_logprobs_equal_the_models_own() -> None:
    asked = LogprobSettings(top=3, prompt=2, ids=TokenIds([11]))
    deltas = run(job(logprobs=asked, sampling=JobSampling(temperature=0.7, seed=4)))
    import torch
    from transformers import AutoModelForCausalLM

    whole = [*PROMPT, *ids(deltas)]
    model = AutoModelForCausalLM.from_pretrained(tiny_llama())
    with torch.no_grad():
        rows = torch.log_softmax(model(torch.tensor([whole])).logits[0], -1)
    entries = [entry for delta in deltas for entry in delta.logprobs]
    for position, entry in enumerate(entries, start=len(PROMPT)):
        assert entry.logprob == pytest.approx(float(rows[position - 1, entry.id]), abs=1e-4)
        assert entry.rank == int((rows[position - 1] > rows[position - 1, entry.id]).sum()) + 1
        assert 11 in dict(entry.top)
    prompt = deltas[0].prompt_logprobs
    assert prompt is not None
    for position in range(1, len(PROMPT)):
        wanted = float(rows[position - 1, PROMPT[position]])
        assert prompt[position].logprob == pytest.approx(wanted, abs=1e-4)


@pytest.mark.torch
def test_sampled_logprobs_are_those_that_were_drawn_from() -> None:
    narrow = JobSampling(temperature=1.0, top_k=1, seed=4)
    deltas = run(job(logprobs=LogprobSettings(mode="sampled"), sampling=narrow))
    assert [entry.logprob for delta in deltas for entry in delta.logprobs] == [0.0] * 16


@pytest.mark.torch
def test_seeds_give_different_answers() -> None:
    answers = {tuple(ids(run(job(sampling=JobSampling(seed=seed))))) for seed in range(4)}
    assert len(answers) == 4


@pytest.mark.torch
def test_ids_beyond_the_tokenizer_do_not_exist() -> None:
    services = lone_services()
    services = Services(services.keys, tokenizer=Smaller(), model="m", context_length=64)
    card = build(ReferenceSettings(path=str(tiny_llama())), services).status().card
    assert (card.vocab_size, card.context_length, card.eos_ids) == (100, 64, (3, 1))
    assert card.fingerprints == {"vocabulary": "v"}
    hot = job(sampling=JobSampling(temperature=9.0), stopping=JobStopping(max_tokens=40))
    assert max(ids(run(hot, services))) < 100 < VOCABULARY
    refused = run(job(prompt=TokenIds([120])), services)
    assert refused[0].finish.cause.value == "refused"


@pytest.mark.torch
def test_the_loop_is_never_blocked_and_a_failed_pass_ends_one_job() -> None:
    async def go() -> None:
        engine = build(ReferenceSettings(path=str(tiny_llama())), lone_services())
        model = engine._worker._model
        real, passes = model.logits, []

        def fails(ids, cache, *, of_all=False):
            passes.append(ids)
            if ids == [9]:
                raise RuntimeError("out of memory")
            return real(ids, cache, of_all=of_all)

        model.logits = fails
        engine.submit([job(), job(job="bad", prompt=TokenIds([9]))])
        ends = {}
        async for batch in engine.batches():
            ends |= {delta.job: delta.finish for delta in batch if delta.finish is not None}
            if len(ends) == 2:
                break
        assert ends["bad"].cause.value == "internal"
        assert "RuntimeError" in ends["bad"].message
        assert ends["j"].cause.value == "max"
        await engine.drain(0)

    asyncio.run(go())


@pytest.mark.torch
def test_loading_says_what_was_loaded(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="tokenwire.engine.reference"):
        services = Services(lone_services().keys, checkpoint=Checkpoint(tiny_llama()))
        build(ReferenceSettings(dtype="bfloat16"), services)
    assert "LlamaForCausalLM" in caplog.text
    assert "bfloat16 on cpu, vocabulary 160, context 512" in caplog.text


@pytest.mark.torch
def test_what_cannot_be_loaded_is_said(tmp_path: Path) -> None:
    tiny_llama()

    def fails(words: str, **settings) -> None:
        with pytest.raises(ConfigError, match=words):
            build(ReferenceSettings(**settings), lone_services())

    fails("no folder", path=str(tmp_path / "none"))
    fails("no checkpoint")
    fails("no weights", path=str(tmp_path))
    fails("no file 'x.gguf'", path=str(tmp_path), gguf="x.gguf")
    (tmp_path / "a.gguf").write_bytes(b"no")
    (tmp_path / "b.gguf").write_bytes(b"no")
    fails("a.gguf, b.gguf", path=str(tmp_path))
    fails("cannot load", path=str(tmp_path), gguf="a.gguf")
    fails("device 'nonsense'", path=str(tiny_llama()), device="nonsense")


def test_without_torch_it_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"tokenwire\[reference\]"):
        build(ReferenceSettings(path="x"), lone_services())


def test_listing_it_needs_nothing() -> None:
    (factory,) = register_engines()
    assert (factory.name, factory.settings) == ("reference", ReferenceSettings)
