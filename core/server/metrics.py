"""Counts calls as an observer and shows the sums to Prometheus. Nothing here runs per token."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias, final

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client import Metric as Family
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from tokenwire.core.figures import FIGURES, known
from tokenwire.core.ports.observer import CallEnded, CallStarted, Observer
from tokenwire.core.server.metric_files import STALE_S, MetricFiles
from tokenwire.core.server.metric_table import ENGINE, METRICS, Metric
from tokenwire.core.server.tally import Series, Snapshot, Tally, merged
from tokenwire.core.tokens import EngineStatus

__all__ = ("Metrics",)

Statuses: TypeAlias = Callable[[], Mapping[str, EngineStatus]]
Replies: TypeAlias = Callable[[], Mapping[tuple[str, int], int]]
TTFT = METRICS["tokenwire_time_to_first_token_seconds"]
DURATION = METRICS["tokenwire_request_duration_seconds"]


@final
class Metrics(Observer):
    """Of one process, or (with `files`) of all workers of one server."""

    def __init__(self, replies: Replies, files: MetricFiles | None = None) -> None:
        """`replies`: HTTP replies so far by (protocol, status)."""
        self._statuses: Statuses = dict
        self._replies = replies
        self._files = files
        self._tally = Tally()
        self._running: dict[str, int] = {}

    def watch(self, statuses: Statuses) -> None:
        """Show these engines too, by model."""
        self._statuses = statuses

    def call_started(self, event: CallStarted) -> None:
        self._running[event.model] = self._running.get(event.model, 0) + 1
        self._tally.count("tokenwire_prompt_tokens", (event.model,), event.prompt_tokens)

        if (note := event.history) is not None:
            self._tally.count("tokenwire_history", (event.model, note.outcome, note.cause))
            if note.lost:
                self._tally.count(
                    "tokenwire_history_tokens_lost", (event.model, note.cause), note.lost
                )

    def call_ended(self, event: CallEnded) -> None:
        model = (event.model,)
        call = (event.protocol, event.model)
        tally = self._tally
        self._running[event.model] = self._running.get(event.model, 1) - 1
        tally.count("tokenwire_requests", (*call, event.outcome))
        tally.observe(DURATION.name, call, DURATION.bounds, event.duration_s)
        tally.count("tokenwire_computed_tokens", model, event.computed_tokens)
        if event.cached_answer:
            tally.count("tokenwire_cached_answers", call)
        if event.ttft_s is not None:
            tally.observe(TTFT.name, model, TTFT.bounds, event.ttft_s)
        if event.itl_counts:
            counted = (*event.itl_counts, event.itl_sum_s)
            tally.add("tokenwire_inter_token_seconds", model, counted)
        if event.usage is not None:
            tally.count("tokenwire_completion_tokens", model, event.usage.completion_tokens)
            tally.count("tokenwire_cached_tokens", model, event.usage.cached_tokens)

    def snapshot(self) -> Snapshot:
        replies = tuple(
            Series("tokenwire_http_replies", (protocol, str(status)), (count,))
            for (protocol, status), count in self._replies().items()
        )
        statuses = self._statuses()
        engines = tuple(_figures(statuses))
        totals = (*self._tally.series(), *replies, *(one for one in engines if not _is_gauge(one)))
        sizes = (one for one in engines if _is_gauge(one))
        return Snapshot(time.time(), totals, (*self._gauges(statuses), *sizes))

    def _gauges(self, statuses: Mapping[str, EngineStatus]) -> Iterator[Series]:
        yield Series("tokenwire_workers", (), (1,))
        for model, running in self._running.items():
            yield Series("tokenwire_calls_running", (model,), (running,))
        for model, status in statuses.items():
            yield Series("tokenwire_engine_ready", (model,), (float(status.ready),))
            yield Series("tokenwire_engine_running", (model,), (status.running,))
            yield Series("tokenwire_engine_waiting", (model,), (status.waiting,))
            yield Series("tokenwire_kv_blocks", (model,), (status.kv_blocks_total,))
            yield Series("tokenwire_kv_blocks_free", (model,), (status.kv_blocks_free,))

    def share(self) -> None:
        """Let the other workers see what this one counted. Raises OSError."""
        if self._files is not None:
            self._files.write(self.snapshot())

    def exposition(self, accept: str) -> tuple[bytes, str]:
        """The body and its content type, in the format that an Accept header asks for."""
        own = self.snapshot()
        others: tuple[Snapshot, ...] = ()
        registry = CollectorRegistry()
        if self._files is None:
            ProcessCollector(registry=registry)
        else:
            # Why: written before the others are read, so that no sum shown is ever taken back.
            self._files.write(own)
            others = self._files.others()
        fresh = [part for part in others if own.time - part.time < STALE_S]
        totals = merged([own.totals, *(part.totals for part in others)])
        gauges = merged([own.gauges, *(part.gauges for part in fresh)])
        registry.register(_Shown((*totals, *gauges)))
        encode, content_type = choose_encoder(accept)
        return encode(registry), content_type


def _figures(statuses: Mapping[str, EngineStatus]) -> Iterator[Series]:
    """What engines count of themselves."""
    for model, status in statuses.items():
        for figure in known(status.figures):
            labels = (model, figure.label) if FIGURES[figure.name].label else (model,)
            yield Series(ENGINE + figure.name, labels, figure.values)


def _is_gauge(series: Series) -> bool:
    return METRICS[series.metric].kind == "gauge"


@final
class _Shown(Collector):
    """Sums as prometheus-client's families."""

    def __init__(self, series: Iterable[Series]) -> None:
        self._by_name: dict[str, list[Series]] = {}
        for one in series:
            self._by_name.setdefault(one.metric, []).append(one)

    def collect(self) -> Iterator[Family]:
        for metric in METRICS.values():
            yield _family(metric, self._by_name.get(metric.name, ()))


def _family(metric: Metric, series: Iterable[Series]) -> Family:
    if metric.kind == "counter":
        counter = CounterMetricFamily(metric.name, metric.help, labels=metric.labels)
        for one in series:
            counter.add_metric(one.labels, one.values[0])
        return counter
    if metric.kind == "gauge":
        gauge = GaugeMetricFamily(metric.name, metric.help, labels=metric.labels)
        for one in series:
            gauge.add_metric(one.labels, one.values[0])
        return gauge
    histogram = HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
    for one in series:
        histogram.add_metric(one.labels, _buckets(metric.bounds, one.values), one.values[-1])
    return histogram


def _buckets(bounds: tuple[float, ...], values: tuple[float, ...]) -> list[tuple[str, float]]:
    """Cumulative, as the format wants them."""
    total = 0.0
    buckets = []
    for name, count in zip((*map(str, bounds), "+Inf"), values, strict=False):
        total += count
        buckets.append((name, total))
    return buckets
