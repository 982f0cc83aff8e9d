"""Every metric there is: name, kind, labels, meaning, buckets. A table; knows no server."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from tokenwire.core.figures import FIGURES
from tokenwire.core.ports.observer import ITL_BOUNDS

__all__ = ("ENGINE", "METRICS", "Metric")


class Metric(Struct, frozen=True):
    """`name` as Prometheus shows it, a counter's without its "_total"."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    labels: tuple[str, ...]
    help: str
    bounds: tuple[float, ...] = ()
    """Of a histogram: upper bounds in seconds; one more bucket holds what is above."""


ENGINE = "tokenwire_engine_"
"""Before the names of an engine's own figures."""
TTFT = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
DURATION = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)

METRICS = {
    metric.name: metric
    for metric in (
        Metric(
            "tokenwire_requests",
            "counter",
            ("protocol", "model", "outcome"),
            "Calls that ended, by how: ok, cancelled, or the error's word.",
        ),
        Metric(
            "tokenwire_http_replies",
            "counter",
            ("protocol", "status"),
            "HTTP requests that ended, refused ones included; status 0: the client left first.",
        ),
        Metric(
            "tokenwire_cached_answers",
            "counter",
            ("protocol", "model"),
            "Calls answered from the store.",
        ),
        Metric(
            "tokenwire_history",
            "counter",
            ("model", "outcome", "cause"),
            "Calls that follow a known turn: spliced onto its ids, or diverged, and why.",
        ),
        Metric(
            "tokenwire_history_tokens_lost",
            "counter",
            ("model", "cause"),
            "Tokens of known turns behind the first that differs.",
        ),
        Metric("tokenwire_prompt_tokens", "counter", ("model",), "Tokens of prompts."),
        Metric("tokenwire_completion_tokens", "counter", ("model",), "Tokens generated."),
        Metric(
            "tokenwire_cached_tokens", "counter", ("model",), "Prompt tokens found in the KV cache."
        ),
        Metric(
            "tokenwire_computed_tokens", "counter", ("model",), "Prompt tokens that were computed."
        ),
        Metric(
            "tokenwire_time_to_first_token_seconds",
            "histogram",
            ("model",),
            "From a call's arrival to its first token.",
            TTFT,
        ),
        Metric(
            "tokenwire_inter_token_seconds",
            "histogram",
            ("model",),
            "Between one token of a call and the next.",
            ITL_BOUNDS,
        ),
        Metric(
            "tokenwire_request_duration_seconds",
            "histogram",
            ("protocol", "model"),
            "From a call's arrival to its end.",
            DURATION,
        ),
        Metric("tokenwire_calls_running", "gauge", ("model",), "Calls that have not ended."),
        Metric("tokenwire_engine_ready", "gauge", ("model",), "Engines that take calls."),
        Metric("tokenwire_engine_running", "gauge", ("model",), "Sequences being generated."),
        Metric("tokenwire_engine_waiting", "gauge", ("model",), "Sequences in the queue."),
        Metric("tokenwire_kv_blocks", "gauge", ("model",), "KV blocks that there are."),
        Metric("tokenwire_kv_blocks_free", "gauge", ("model",), "KV blocks free or evictable."),
        Metric("tokenwire_workers", "gauge", (), "Server processes that these figures cover."),
        *(
            Metric(
                ENGINE + name,
                figure.kind,
                ("model", figure.label) if figure.label else ("model",),
                figure.help,
                figure.bounds,
            )
            for name, figure in FIGURES.items()
        ),
    )
}
