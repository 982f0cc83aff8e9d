"""Figures: what a call adds, that sums are sums, and that dead workers stay counted."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenwire.core.events import Usage
from tokenwire.core.figures import FIGURES, Histogram, known
from tokenwire.core.ports.observer import ITL_BOUNDS, CallEnded, CallStarted
from tokenwire.core.server.metric_files import STALE_S, MetricFiles
from tokenwire.core.server.metric_table import METRICS
from tokenwire.core.server.metrics import Metrics
from tokenwire.core.server.tally import Series, Snapshot, Tally, merged
from tokenwire.core.tokens import EngineCard, EngineStatus, Figure

STARTED = CallStarted("r", "chat", "m", "default", True, 100, 0.0)
NO_ITL = (0,) * (len(ITL_BOUNDS) + 1)


def ended(**fields: object) -> CallEnded:
    usage = Usage(prompt_tokens=100, completion_tokens=20, cached_tokens=64)
    base = {
        "request_id": "r",
        "protocol": "chat",
        "model": "m",
        "tenant": "default",
        "outcome": "ok",
        "status": 200,
        "usage": usage,
        "computed_tokens": 36,
        "ttft_s": 0.03,
        "duration_s": 1.5,
    }
    return CallEnded(**{**base, **fields})


def statuses() -> dict[str, EngineStatus]:
    card = EngineCard("m", 256, 4096)
    return {"m": EngineStatus(card, running=3, waiting=2, kv_blocks_total=8, kv_blocks_free=5)}


def figures(metrics: Metrics) -> dict[str, float]:
    body, content_type = metrics.exposition("")
    assert content_type.startswith("text/plain")
    lines = [line for line in body.decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def test_a_call_adds_to_every_figure():
    metrics = Metrics(lambda: {("chat", 200): 1, ("admin", 404): 2})
    metrics.watch(statuses)
    metrics.call_started(STARTED)
    assert figures(metrics)['tokenwire_calls_running{model="m"}'] == 1
    counts = (3, *NO_ITL[1:-1], 1)
    metrics.call_ended(ended(itl_counts=counts, itl_sum_s=9.5))
    found = figures(metrics)
    call = 'model="m",outcome="ok",protocol="chat"'
    assert found[f"tokenwire_requests_total{{{call}}}"] == 1
    assert found['tokenwire_calls_running{model="m"}'] == 0
    assert found['tokenwire_prompt_tokens_total{model="m"}'] == 100
    assert found['tokenwire_completion_tokens_total{model="m"}'] == 20
    assert found['tokenwire_cached_tokens_total{model="m"}'] == 64
    assert found['tokenwire_computed_tokens_total{model="m"}'] == 36
    assert found['tokenwire_time_to_first_token_seconds_bucket{le="0.025",model="m"}'] == 0
    assert found['tokenwire_time_to_first_token_seconds_bucket{le="0.05",model="m"}'] == 1
    assert found['tokenwire_inter_token_seconds_bucket{le="0.001",model="m"}'] == 3
    assert found['tokenwire_inter_token_seconds_bucket{le="2.5",model="m"}'] == 3
    assert found['tokenwire_inter_token_seconds_bucket{le="+Inf",model="m"}'] == 4
    assert found['tokenwire_inter_token_seconds_count{model="m"}'] == 4
    assert found['tokenwire_inter_token_seconds_sum{model="m"}'] == 9.5
    assert found['tokenwire_request_duration_seconds_sum{model="m",protocol="chat"}'] == 1.5
    assert found['tokenwire_engine_running{model="m"}'] == 3
    assert found['tokenwire_engine_waiting{model="m"}'] == 2
    assert found['tokenwire_kv_blocks{model="m"}'] == 8
    assert found['tokenwire_kv_blocks_free{model="m"}'] == 5
    assert found['tokenwire_http_replies_total{protocol="admin",status="404"}'] == 2
    assert found["process_cpu_seconds_total"] > 0


def test_a_cancelled_call_without_tokens_counts_as_one():
    metrics = Metrics(dict)
    metrics.call_started(STARTED)
    metrics.call_ended(ended(outcome="cancelled", usage=None, ttft_s=None, computed_tokens=0))
    found = figures(metrics)
    key = 'tokenwire_requests_total{model="m",outcome="cancelled",protocol="chat"}'
    assert found[key] == 1
    assert "tokenwire_time_to_first_token_seconds_count" not in str(found)


@given(st.lists(st.floats(0, 100), max_size=30))
def test_one_by_one_or_in_bulk_is_the_same(latencies):
    bounds = ITL_BOUNDS
    single, bulk = Tally(), Tally()
    counts = [0] * (len(bounds) + 1)
    for latency in latencies:
        single.observe("h", (), bounds, latency)
        counts[sum(latency > bound for bound in bounds)] += 1
    if latencies:
        bulk.add("h", (), (*counts, sum(latencies)))
    for one, other in zip(single.series(), bulk.series(), strict=True):
        assert one.values == pytest.approx(other.values)


series = st.builds(
    Series,
    st.sampled_from(["a", "b"]),
    st.sampled_from([("x",), ("y",)]),
    st.tuples(st.integers(0, 9), st.integers(0, 9)),
)


@given(st.lists(st.lists(series, max_size=4), max_size=4), st.randoms(use_true_random=False))
def test_merging_ignores_order_and_grouping(parts, random):
    whole = sorted(merged(parts), key=repr)
    shuffled = list(parts)
    random.shuffle(shuffled)
    assert sorted(merged(shuffled), key=repr) == whole
    assert sorted(merged([merged(parts[:2]), merged(parts[2:])]), key=repr) == whole


def test_workers_add_up_and_the_dead_stay_counted(tmp_path):
    one = Metrics(dict, MetricFiles(tmp_path, "1-1"))
    two = Metrics(dict, MetricFiles(tmp_path, "2-2"))
    one.watch(statuses)
    two.watch(statuses)
    for metrics in (one, two):
        metrics.call_started(STARTED)
        metrics.call_ended(ended())
    two.share()
    found = figures(one)
    assert found['tokenwire_prompt_tokens_total{model="m"}'] == 200
    assert found["tokenwire_workers"] == 2
    assert found['tokenwire_engine_running{model="m"}'] == 6
    assert not any(name.startswith("process_") for name in found)
    last = two.snapshot()
    long_ago = Snapshot(last.time - 2 * STALE_S, last.totals, last.gauges)
    MetricFiles(tmp_path, "2-2").write(long_ago)
    found = figures(one)
    assert found['tokenwire_prompt_tokens_total{model="m"}'] == 200
    assert found["tokenwire_workers"] == 1


def test_the_table_is_what_prometheus_takes():
    for name, metric in METRICS.items():
        assert re.fullmatch(r"tokenwire_[a-z_]+", name)
        assert not name.endswith(("_total", "_count", "_sum", "_bucket"))
        assert metric.help.endswith(".")
        assert list(metric.bounds) == sorted(metric.bounds)
        assert bool(metric.bounds) == (metric.kind == "histogram")


def test_an_engines_own_figures_are_shown_by_model():
    steps = Histogram("step_seconds")
    steps.add(0.004)
    steps.add(0.004, 2)
    steps.add(9.0)
    own = (
        Figure("tokens", (5.0,), "generated"),
        Figure("tokens", (2.0,), "prompt_cached"),
        Figure("kv_used_bytes", (4096.0,)),
        steps.figure(),
        Figure("of_a_later_version", (1.0,)),
        Figure("queue_seconds", (1.0, 2.0)),
    )
    status = EngineStatus(EngineCard("m", 256, 4096), figures=own)
    metrics = Metrics(dict)
    metrics.watch(lambda: {"m": status, "n": EngineStatus(EngineCard("n", 256, 4096))})
    found = figures(metrics)
    assert found['tokenwire_engine_tokens_total{model="m",source="generated"}'] == 5
    assert found['tokenwire_engine_tokens_total{model="m",source="prompt_cached"}'] == 2
    assert found['tokenwire_engine_kv_used_bytes{model="m"}'] == 4096
    assert found['tokenwire_engine_step_seconds_bucket{le="0.005",model="m"}'] == 3
    assert found['tokenwire_engine_step_seconds_bucket{le="2.5",model="m"}'] == 3
    assert found['tokenwire_engine_step_seconds_count{model="m"}'] == 4
    assert found['tokenwire_engine_step_seconds_sum{model="m"}'] == pytest.approx(9.012)
    assert not any("later_version" in name or "engine_queue" in name for name in found)


def test_figures_of_two_processes_add_up():
    def snapshot(count):
        metrics = Metrics(dict)
        figure = Figure("steps", (count,))
        metrics.watch(lambda: {"m": EngineStatus(EngineCard("m", 256, 99), figures=(figure,))})
        return metrics.snapshot()

    found = {series.metric: series for series in merged([snapshot(k).totals for k in (3.0, 4.0)])}
    assert found["tokenwire_engine_steps"].values == (7.0,)


def test_every_figure_of_the_list_is_a_metric_and_none_hides_another():
    assert len(METRICS) == len({metric.name for metric in METRICS.values()})
    for name, kind in FIGURES.items():
        metric = METRICS["tokenwire_engine_" + name]
        assert (metric.kind, metric.bounds) == (kind.kind, kind.bounds)
        assert known([Figure(name, (0.0,) * kind.width)])
        assert not known([Figure(name, (0.0,) * (kind.width + 1))])
        assert list(kind.bounds) == sorted(kind.bounds)
