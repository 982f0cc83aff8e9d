"""Faults at the network's seam: who ends and who goes on, what is given back, what is told."""

from __future__ import annotations

import gc
import json
import weakref
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.plugins.engines.cuda.driving import engine, job, poison, run, waves
from tests.plugins.engines.cuda.faulty import broken_network, settled
from tests.plugins.engines.reference.tiny import tiny_llama
from tokenwire.core.errors import ConfigError
from tokenwire.core.tokens import Adapter, FinishCause, FinishKind, LogprobSettings, TokenJob

pytestmark = pytest.mark.torch

BAD = 77
LONG = [5, 17, 99, 42, 42, 7, 11, 12, 13, 99, 42, 42, 7, 3, 8, 9, 100]
POISONED = [5, 17, 99, 42, BAD, 7, 11, 12]


def jobs() -> list[TokenJob]:
    return [
        job("long", LONG, max_tokens=7),
        job("fork", [*LONG[:9], 50, 51], max_tokens=5),
        job("two", [9, 8], max_tokens=6, n=2),
        job("scored", [31, 32, 33], max_tokens=4, logprobs=LogprobSettings(top=2, prompt=1)),
    ]


@cache
def expected() -> dict[tuple[str, int], tuple[int, ...]]:
    """No answer has the bad id in it, so that a fault on it strikes one prompt alone."""
    found = {key: tuple(answer.ids) for key, answer in run(engine(), *jobs()).items()}
    assert all(BAD not in ids for ids in found.values())
    return found


def good(found) -> None:
    for key, ids in expected().items():
        assert tuple(found[key].ids) == ids, key
        assert found[key].finish.kind is FinishKind.LENGTH


def failed(answer, words: str) -> None:
    assert answer.finish.kind is FinishKind.ERROR
    assert answer.finish.cause is FinishCause.INTERNAL
    assert answer.finish.retryable
    assert words in answer.finish.message


WAYS = {
    "plain": {},
    "overlap": {"overlap": True},
    "chunks": {"overlap": True, "long_prefill_tokens": 3},
    "drafts": {"speculation": {"tokens": 3, "longest": 3, "shortest": 1}},
}


@pytest.mark.parametrize("way", WAYS)
def test_a_request_that_fails_alone_ends_alone(way: str) -> None:
    made = engine(**WAYS[way])
    poison(made)
    faulty = broken_network(made, ids=frozenset({BAD}))
    found = run(made, *jobs(), job("bad", POISONED), job("bad2", POISONED, n=2))
    good(found)
    for key in ("bad", 0), ("bad2", 0), ("bad2", 1):
        failed(found[key], "RuntimeError in a step")
    assert faulty.faults > 3
    settled(made)
    errors = [each for each in made._worker.status().figures if each.name == "op_errors"]
    assert sum(each.values[0] for each in errors) >= 3


@pytest.mark.parametrize("way", ["plain", "overlap", "chunks"])
def test_nan_ends_one_request_and_what_it_wrote_is_not_found_again(way: str) -> None:
    made = engine(**WAYS[way])
    faulty = broken_network(made, nan_ids=frozenset({POISONED[-1]}))
    again = job("again", [*POISONED, 3], max_tokens=3)
    first = [*(each for each in jobs() if each.job == "two"), job("bad", POISONED)]
    found = waves(made, first, [again])
    failed(found["bad", 0], "NaN")
    for choice in (0, 1):
        assert tuple(found["two", choice].ids) == expected()["two", choice]
    assert found["again", 0].counts.cached == 0
    assert found["again", 0].finish.kind is FinishKind.LENGTH
    assert not faulty.faults
    settled(made)


@settings(max_examples=12, deadline=None)
@given(st.sets(st.integers(0, 14), min_size=1, max_size=3), st.sampled_from(sorted(WAYS)))
def test_steps_that_fail_once_change_no_answer(calls: set[int], way: str) -> None:
    """Wherever they strike: each row is run alone, and only one whose own run fails too ends."""
    made = engine(**WAYS[way])
    poison(made)
    broken_network(made, calls=frozenset(calls), after=max(calls) % 2 == 0)
    found = run(made, *jobs())
    ended = 0
    for key, ids in expected().items():
        answer = found[key]
        assert sum(delta.finish is not None for delta in answer.deltas) == 1
        if answer.finish.kind is FinishKind.ERROR:
            failed(answer, "RuntimeError in a step")
            assert tuple(answer.ids) == ids[: len(answer.ids)]
            ended += 1
        else:
            assert tuple(answer.ids) == ids, (key, way)
    assert ended < len(calls), "a step's own failure ended a row that ran alone"
    settled(made)


def test_memory_of_a_failed_step_is_there_again_before_its_rows_run() -> None:
    import torch

    held: list[weakref.ref] = []

    def error() -> Exception:
        tensor = torch.empty(1000)
        held.append(weakref.ref(tensor))
        return torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9 GiB")

    for overlap in (False, True):
        held.clear()
        made = engine(overlap=overlap)
        faulty = broken_network(made, calls=frozenset({1}), error=error)
        original, alive = faulty.forward, []

        def forward(batch, caches, original=original, alive=alive):
            keep = torch.empty(500)
            held.append(weakref.ref(keep))
            alive.append(sum(each() is not None for each in held[:-1]))
            return original(batch, caches)

        faulty.forward = forward
        gc.disable()
        try:
            found = run(made, *jobs())
        finally:
            gc.enable()
        good(found)
        # Why later: with overlap the next step is launched before the failure is seen.
        assert not any(alive[3 if overlap else 2 :]), "frames of an error keep tensors"
        settled(made)


@pytest.mark.parametrize("overlap", [False, True])
def test_a_lost_device_ends_everything_and_ready_says_so(overlap: bool) -> None:
    made = engine(overlap=overlap)
    broken_network(made, calls=frozenset(range(3, 999)))
    made._worker._runner.is_alive = lambda: False
    found = run(made, *jobs())
    for answer in found.values():
        assert answer.finish.kind is FinishKind.ERROR
        assert answer.finish.retryable
        assert sum(delta.finish is not None for delta in answer.deltas) == 1
    causes = {answer.finish.cause for answer in found.values()}
    assert FinishCause.LOST in causes
    status = made._worker.status()
    assert not status.ready
    assert "the device is lost: RuntimeError: the test's fault" in status.reason
    refusal = made._worker.refusal(job("later", [1]))
    assert refusal.cause is FinishCause.LOST
    settled(made)


@pytest.mark.parametrize("where", ["schedule", "retire"])
def test_a_loop_that_dies_leaves_nobody_waiting(where: str) -> None:
    class Panic(BaseException):
        """As compiled code raises."""

    made = engine()
    scheduler, calls = made._worker._scheduler, []
    original = getattr(scheduler, where)

    def dies(*arguments):
        calls.append(1)
        if len(calls) == 6:
            raise Panic
        return original(*arguments)

    setattr(scheduler, where, dies)
    found = run(made, *jobs())
    assert len(found) == 5
    for answer in found.values():
        assert answer.finish.kind in (FinishKind.ERROR, FinishKind.LENGTH)
        assert sum(delta.finish is not None for delta in answer.deltas) == 1
    assert made._worker.status().reason == "its loop failed: Panic"
    made._worker._thread.join(10)
    assert not made._worker._thread.is_alive()


def test_a_job_that_cannot_be_taken_ends_alone() -> None:
    made = engine()
    scheduler = made._worker._scheduler
    original = scheduler.add

    def add(seq):
        if seq.job == "bad":
            raise ZeroDivisionError
        return original(seq)

    scheduler.add = add
    found = run(made, *jobs(), job("bad", [3], n=2))
    good(found)
    for choice in (0, 1):
        failed(found["bad", choice], "ZeroDivisionError")
    settled(made)


# --- adapters -----------------------------------------------------------------------------------


def adapter(folder: Path, value: float) -> str:
    """One low-rank addition to the first layer's down projection, of one number."""
    torch = pytest.importorskip("torch")
    from safetensors.torch import save_file

    folder.mkdir()
    name = "base_model.model.model.layers.0.mlp.down_proj"
    tensors = {
        f"{name}.lora_A.weight": torch.full((2, 48), value),
        f"{name}.lora_B.weight": torch.full((32, 2), value),
    }
    save_file(tensors, folder / "adapter_model.safetensors")
    fields = {"peft_type": "LORA", "r": 2, "lora_alpha": 2, "target_modules": ["down_proj"]}
    (folder / "adapter_config.json").write_text(json.dumps(fields))
    return str(folder)


@pytest.mark.parametrize("graphs", [False, True])
def test_an_adapter_that_overflows_poisons_those_who_ask_for_it(tmp_path, graphs: bool) -> None:
    made = engine(
        overlap=True,
        graphs=graphs,
        adapters={"mild": adapter(tmp_path / "a", 2.0), "huge": adapter(tmp_path / "b", 1e30)},
    )
    mild = job("mild", LONG, max_tokens=5, adapter=Adapter("mild"))
    huge = job("huge", LONG, max_tokens=5, adapter=Adapter("huge"))
    found = waves(made, [*jobs(), huge, mild], [job("huge2", LONG, adapter=Adapter("huge"))])
    good(found)
    assert found["mild", 0].finish.kind is FinishKind.LENGTH
    assert found["mild", 0].ids != list(expected()["long", 0])[:5]
    for name in ("huge", "huge2"):
        failed(found[name, 0], "NaN or infinity")
        assert found[name, 0].counts.cached == 0
    settled(made)


def test_an_adapter_with_nan_is_refused_at_start(tmp_path) -> None:
    with pytest.raises(ConfigError, match=r"adapter 'broken' .*down_proj' holds NaN or infinity"):
        engine(adapters={"broken": adapter(tmp_path / "a", float("nan"))})


# --- memory at start ----------------------------------------------------------------------------


def test_too_large_kv_says_what_was_wanted_and_which_key_to_lower() -> None:
    words = r"KV memory wants 999999999\.00 GiB, .* GiB were free on cpu: lower kv_gib"
    with pytest.raises(ConfigError, match=words):
        engine(kv_gib=999_999_999)


def test_weights_that_do_not_fit_are_named_with_their_size(monkeypatch) -> None:
    torch = pytest.importorskip("torch")
    from tokenwire.plugins.engines.cuda import load

    def full(*arguments, **fields):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(load, "load", full)
    with pytest.raises(ConfigError, match=rf"{tiny_llama().name} wants 0\.00 GiB, .* free on cpu"):
        engine()


def test_a_job_that_never_fits_is_refused_and_others_go_on() -> None:
    """The card allows it, the scheduler does not."""
    made = engine()
    made._worker._scheduler.kv.refusal = lambda tokens, chunk: "too long" if tokens == 8 else ""
    found = run(made, *jobs(), job("bad", [3] * 6, max_tokens=3))
    good(found)
    assert found["bad", 0].finish.message == "too long"
    settled(made)
