"""Measures implementations against the roofline of the device they run on. Judges nothing.

The least time of an op is max(bytes it must move / bandwidth, operations / peak), both of them
measured in the same process: a copy, and a large bfloat16 product (8-bit floats count as twice that
fast). `distance` is the measured time over it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

import torch

from tokenwire.kernels.cases import Bench
from tokenwire.kernels.check import on_device
from tokenwire.kernels.grid import benches
from tokenwire.kernels.op import REFERENCE, Implementation, Op

__all__ = ("Measurement", "Roofline", "compared", "measured", "roofline", "timed")

RUNS = {"cuda": 20, "cpu": 5}
COPIED = {"cuda": 1 << 30, "cpu": 1 << 26}
"""Bytes of the copy that measures the bandwidth: more than any cache holds."""
SIDE = 8192
"""Of the square matrices whose product measures the peak."""
FLUSHED = 256 << 20
"""Bytes written before each run on a GPU, so that its cache holds no argument."""
MOST_ON_CPU = 1 << 30
"""Operations from which a measurement is left out on the CPU: the bandwidth does not bind it."""


@dataclass(frozen=True, slots=True)
class Roofline:
    """What the device reached here: bytes and operations a second. A peak of 0 binds nothing."""

    bandwidth: float
    peak: float = 0.0

    def seconds(self, bench: Bench) -> float:
        """The least time of what is measured."""
        moving = bench.bytes / self.bandwidth
        if not self.peak:
            return moving
        return max(moving, bench.flops / (self.peak * (2 if bench.fp8 else 1)))


@dataclass(frozen=True, slots=True)
class Measurement:
    op: str
    implementation: str
    bench: str
    seconds: float
    """Median of the runs."""
    least: float
    """Seconds that the roofline allows."""

    @property
    def distance(self) -> float:
        return self.seconds / self.least

    def line(self) -> str:
        times = f"{self.seconds * 1e6:>10.1f} us of {self.least * 1e6:>9.1f} us"
        return (
            f"{self.op:<18} {self.implementation:<12} {self.bench:<34} {times} {self.distance:.2f}x"
        )

    def as_json(self) -> str:
        return json.dumps({**asdict(self), "distance": self.distance})


def measured(ops: Sequence[str] = (), *, device: str) -> Iterator[Measurement]:
    """On "cuda" every implementation that applies; on "cpu" those that run there."""
    limits = roofline(device)
    for op, every in benches(ops):
        for bench in every:
            yield from compared(op, bench, limits, device=device)


def compared(
    op: Op, bench: Bench, limits: Roofline, *, device: str, kernels_only: bool = False
) -> Iterator[Measurement]:
    """One bench of one op, by each implementation that applies. `kernels_only`: without the
    reference, where there is another."""
    if device == "cpu" and bench.flops > MOST_ON_CPU:
        return
    applying = _applying(op, bench, device)
    kernels = [one for one in applying if one.name != REFERENCE]
    for one in kernels if kernels_only and kernels else applying:
        arguments = bench.make(torch.device(device))
        seconds = timed(one.load(), arguments, dict(bench.keywords), device)
        yield Measurement(op.name, one.name, bench.name, seconds, limits.seconds(bench))


def roofline(device: str) -> Roofline:
    """Measures the device."""
    source = torch.zeros(COPIED[device], dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    moved = 2 * COPIED[device]
    bandwidth = moved / timed(target.copy_, (source,), {}, device)
    if device == "cpu":
        return Roofline(bandwidth)
    square = torch.randn(SIDE, SIDE, device=device, dtype=torch.bfloat16)
    return Roofline(bandwidth, 2 * SIDE**3 / timed(torch.matmul, (square, square), {}, device))


def _applying(op: Op, bench: Bench, device: str) -> list[Implementation]:
    if device == "cuda":
        signature = on_device(bench.signature, device)
        return [one for one in op.implementations if not one.supports(signature)]
    found = [one for one in op.implementations if not one.supports(bench.signature)]
    return found or [op.implementation(REFERENCE)]


def timed(
    function: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any], device: str
) -> float:
    """Median seconds of a run, after one that warms it up."""
    clock = _on_gpu if device == "cuda" else _on_cpu

    def call() -> None:
        function(*arguments, **keywords)

    call()
    return median(clock(call) for _ in range(RUNS[device]))


def _on_cpu(call: Callable[[], None]) -> float:
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def _on_gpu(call: Callable[[], None]) -> float:
    torch.empty(FLUSHED, dtype=torch.uint8, device="cuda").zero_()
    begun, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begun.record()
    call()
    ended.record()
    ended.synchronize()
    return float(begun.elapsed_time(ended)) / 1e3
