"""Parts of the check that take the kernels' own cases: what holds, and every op's own benches."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

from apart import Asked, Found

from tokenwire.kernels.bench import measured, roofline
from tokenwire.kernels.grid import reports
from tokenwire.kernels.ops import all_ops

__all__ = ("bench", "ops")

SMALL = ("silu_mul", "rms_norm", "grouped_matmul", "ep_plan")
BENCH_S = 50.0
"""After which `bench` begins no further one: its references are slow, and prove nothing."""


def ops(asked: Asked) -> Iterator[Found]:
    """Every implementation against its reference, in every dtype of the grid, bfloat16 too."""
    names = SMALL if asked.small else tuple(op.name for op in all_ops())
    for report in reports(names[asked.shard :: asked.shards], device=asked.device):
        yield ("skipped" if report.skipped else "lines"), report.line()
        if report.faults:
            yield "broken", report.line()


def bench(asked: Asked) -> Iterator[Found]:
    """Measured time over the roofline's, references beside."""
    begun, limits = time.monotonic(), roofline(asked.device)
    yield "roofline", {"bandwidth": limits.bandwidth, "peak": limits.peak}
    for one in measured(("silu_mul",) if asked.small else (), device=asked.device):
        print(one.line(), flush=True)
        yield "rows", json.loads(one.as_json())
        if time.monotonic() - begun > BENCH_S:
            yield "remarks", f"out of time after {one.op} {one.bench}; the rest is not measured"
            return
