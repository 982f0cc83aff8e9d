"""What the engine tells of itself: figures that add up, its start line, and both over HTTP."""

from __future__ import annotations

import json
import logging
import math
import re
from pathlib import Path

import httpx
import pytest

from tests.clients.live import live_server
from tests.plugins.engines.cuda.driving import engine, job, run, waves
from tests.plugins.engines.cuda.faulty import broken_network
from tests.plugins.engines.reference.tiny import tiny_llama
from tokenwire.core.figures import FIGURES, known
from tokenwire.core.tokens import EngineStatus

pytestmark = pytest.mark.torch

PROMPT = [5, 17, 99, 42, 42, 7, 11, 12, 13]


def figures(status: EngineStatus) -> dict[tuple[str, str], tuple[float, ...]]:
    assert list(status.figures) == known(status.figures), "a figure has no place in the list"
    return {(figure.name, figure.label): figure.values for figure in status.figures}


def count(values: tuple[float, ...]) -> float:
    """Of a histogram."""
    return sum(values[:-1])


@pytest.mark.parametrize("overlap", [False, True])
def test_the_figures_add_up(overlap: bool) -> None:
    made = engine(overlap=overlap)
    again = job("again", PROMPT, max_tokens=4)
    waves(made, [job("a", PROMPT, max_tokens=6), job("b", [9], max_tokens=5, n=2)], [again])
    found = figures(made._worker.status())
    assert found["tokens", "generated"] == (6 + 5 + 5 + 4,)
    assert found["tokens", "prompt_cached"] == (8,)
    assert found["tokens", "prompt_computed"] == (9 + 1 + 1 + 1,)
    assert found["kv_query_tokens", ""] == (9 + 1 + 1 + 9,)
    assert found["kv_hit_tokens", ""] == (8,)
    assert count(found["queue_seconds", ""]) == count(found["prefill_seconds", ""]) == 4
    assert count(found["inter_token_seconds", ""]) == 20 - 4
    (steps,) = found["steps", ""]
    assert count(found["step_seconds", ""]) == steps >= 10
    assert found["preemptions", ""] == (0,)
    assert found["kv_used_bytes", ""] == (0,)
    blocks = made._worker._scheduler.status()
    each = 4 * 2 * 2 * 2 * 8 * 4  # tokens, K and V, layers, KV heads, numbers, bytes
    assert found["kv_bytes", ""] == ((blocks.blocks_total + 1) * each,)
    assert found["kv_cached_bytes", ""] == (blocks.blocks_evictable * each,)
    assert found["memory_bytes", ""] > found["memory_used_bytes", ""] > (0,)
    for values in found.values():
        assert all(math.isfinite(value) and value >= 0 for value in values)


def test_drafts_are_counted_by_what_became_of_them() -> None:
    made = engine(speculation={"tokens": 3, "longest": 3, "shortest": 1})
    run(made, job("a", PROMPT * 2, max_tokens=40))
    found = figures(made._worker.status())
    accepted, rejected = found["tokens", "draft_accepted"][0], found["tokens", "draft_rejected"][0]
    assert accepted > 0
    assert rejected > 0
    assert found["tokens", "generated"] == (40,)
    assert count(found["inter_token_seconds", ""]) == 39
    assert found["steps", ""][0] <= 1 + 39 - accepted + 1


def test_preemptions_are_counted() -> None:
    made = engine(kv_gib=13 * 4 * 2 * 2 * 2 * 8 * 4 / 2**30, max_model_len=40)
    run(made, *(job(f"{k}", PROMPT, max_tokens=20, expected_tokens=0) for k in range(5)))
    found = figures(made._worker.status())
    assert found["preemptions", ""][0] > 0
    assert found["tokens", "generated"] == (100,)
    assert count(found["prefill_seconds", ""]) == count(found["queue_seconds", ""]) == 5


def test_errors_are_counted_by_the_op_that_raised() -> None:
    made = engine()
    attention = made._worker._runner.passes.model.blocks[0].attention

    def sick(*arguments, **fields):
        from tokenwire.kernels.rope.reference import rope

        return rope(None, None, None, None)

    class Ops:
        def __getattr__(self, name: str):
            return sick if name == "rope" else getattr(ops, name)

    ops, attention.ops = attention.ops, Ops()
    run(made, job("a", PROMPT))
    assert figures(made._worker.status())["op_errors", "rope"] == (2,)
    made = engine()
    broken_network(made, nan_ids=frozenset({13}))
    run(made, job("a", PROMPT))
    assert figures(made._worker.status())["op_errors", "network"] == (1,)


def test_one_line_says_what_was_found_at_start(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="tokenwire.engine.cuda"):
        made = engine()
    (line,) = [each.getMessage() for each in caplog.records if "ready" in each.getMessage()]
    pairs = dict(re.findall(r'(\w+)=("[^"]*"|\S+)', line))
    about = made._worker.status().about
    assert list(pairs) == list(about)
    wanted = "model device dtype kv_dtype bytes load_seconds load_gb_s weights_gib workspace_gib"
    wanted += " kv_gib kv_blocks block_size full_context_requests kernels grammar"
    assert set(wanted.split()) <= set(about)
    assert about["device"] == "cpu"
    assert about["family"] == "llama"
    assert about["grammar"] == "none"
    assert "rms_norm" in str(about["kernels"])
    blocks, size = int(about["kv_blocks"]), int(about["block_size"])
    assert about["full_context_requests"] == round(blocks * size / int(about["context_length"]), 1)
    assert json.loads(json.dumps(dict(about))) == about
    run(made, job("a", [1]))


def test_a_server_shows_them(tmp_path: Path) -> None:
    fields = {"plugin": "cuda", "path": str(tiny_llama(300)), "device": "cpu", "threads": 1}
    fields |= {"kv_gib": 0.01, "trace": str(tmp_path / "trace.json")}
    models = [{"name": "m", "tokenizer": "bytes", "engine": fields}]
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": "hello"}],
        "max_tokens": 8,
        "ignore_eos": True,
    }
    with (
        live_server(json.dumps({"models": models}), tmp_path) as server,
        httpx.Client(base_url=server.url, timeout=60) as http,
    ):
        for _ in range(2):
            reply = http.post("/v1/chat/completions", json=body)
            assert reply.status_code == 200, reply.text
        text = http.get("/metrics").text
        shown = http.get("/engines").json()["engines"]["m"]
    numbers = {name: float(value) for name, value in re.findall(r"^(\S+) (\S+)$", text, re.M)}
    own = {name: value for name, value in numbers.items() if name.startswith("tokenwire_engine_")}
    for name in FIGURES:
        # Why not those of experts: one device has all of them.
        if name != "op_errors" and not name.startswith("expert_"):
            assert any(each.startswith(f"tokenwire_engine_{name}") for each in own), name
    assert own['tokenwire_engine_tokens_total{model="m",source="generated"}'] == 16
    assert own['tokenwire_engine_tokens_total{model="m",source="prompt_cached"}'] > 0
    assert own['tokenwire_engine_queue_seconds_count{model="m"}'] == 2
    assert own['tokenwire_engine_kv_hit_tokens_total{model="m"}'] > 0
    assert shown["about"]["device"] == "cpu"
    assert shown["about"]["kv_blocks"] > 0
    events = json.loads((tmp_path / "trace.json").read_text())
    assert any(event["name"] == "device" for event in events)
