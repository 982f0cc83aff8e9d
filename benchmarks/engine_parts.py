"""Where a step of our engine goes: policy, inputs, each op of the network, results, delivery.

Every part runs inside a clock of its thread's CPU time, which a busy machine inflates little; the
clocks cost well under a microsecond a call. A decode step is one of all sequences; a prefill step
has all the tokens that a step may have. The last table is the same loop, at 256 sequences, with a
network that costs nothing: what the engine itself adds to a step.
"""

from __future__ import annotations

import dataclasses
import os
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import thread_time
from typing import Any
from unittest.mock import patch

__all__ = ("show_parts",)

MANY, FEW = 256, 16
LEAST = 0.005
"""Of a step: parts below it are shown together."""
Work = Callable[..., Any]


class Clock:
    """Seconds of every part of a step. What runs inside another part is not counted in that."""

    def __init__(self) -> None:
        self.steps: dict[str, list[dict[str, float]]] = defaultdict(list)
        self.kind = ""
        """Of the step that runs; "": none."""
        self._step: dict[str, float] = defaultdict(float)
        self._inside = [0.0]

    def timed(self, name: str, work: Work) -> Work:
        def run(*args: Any, **named: Any) -> Any:
            self._inside.append(0.0)
            began = thread_time()
            try:
                return work(*args, **named)
            finally:
                took = thread_time() - began
                self._step[name] += took - self._inside.pop()
                self._inside[-1] += took

        return run

    def end(self) -> None:
        if self.kind:
            self.steps[self.kind].append(dict(self._step))
        self.kind = ""
        self._step.clear()


def show_parts(model: Path, dtype: str, load: dict[str, int]) -> None:
    """Prints the tables. Runs the engine in this process, on the load's core."""
    import torch

    os.sched_setaffinity(0, {load["core"]})
    torch.set_num_threads(1)
    clock = Clock()
    with _timed_ops(clock):
        _drive(model, dtype, load, clock)
    for kind, steps in sorted(clock.steps.items()):
        _print(f"{kind} step of {load['prompts']} sequences, {dtype}", steps)
    clock = Clock()
    _drive(model, dtype, {**load, "prompts": MANY, "tokens": FEW}, clock, network=False)
    _print(f"decode step of {MANY} sequences, no network", clock.steps["decode"])


def _drive(
    model: Path, dtype: str, load: dict[str, int], clock: Clock, *, network: bool = True
) -> None:
    from engine_sides import tokenwire

    from tokenwire.plugins.engines.cuda import worker as module

    made: list[Any] = []

    class Watched(module.CudaWorker):
        def __init__(self, *args: Any, **named: Any) -> None:
            super().__init__(*args, **named)
            _watch(self, clock, load["prompts"], network=network)
            made.append(self)

    with patch.object(module, "CudaWorker", Watched):
        run = tokenwire(str(model), dtype, load)
    prompts = [[5 + row] * load["tokens"] for row in range(load["prompts"])]
    for _ in range(2):  # the first is not counted
        clock.steps.clear()
        run(prompts, load["out"])
    made[0].stop()


def _watch(worker: Any, clock: Clock, count: int, *, network: bool) -> None:
    """Puts clocks around the parts of the loop."""
    runner, scheduler, steps = worker._runner, worker._scheduler, worker._steps
    launch, flush = steps.launch, worker._flush
    limit = scheduler.limits.max_batch_tokens

    def launched(rows: Any, decode_rows: int, span: int) -> None:
        if len(rows) == decode_rows == count:
            clock.kind = "decode"
        elif sum(row.count for row in rows) == limit:
            clock.kind = "prefill"
        launch(rows, decode_rows, span)

    def flushed() -> None:
        flush()
        clock.end()

    runner._compute = clock.timed("other device work", runner._compute if network else _nothing)
    steps.launch = clock.timed("inputs and launch", launched)
    scheduler.schedule = clock.timed("schedule", scheduler.schedule)
    steps.retire = clock.timed("results", steps.retire)
    scheduler.retire = clock.timed("retire", scheduler.retire)
    worker._turn = clock.timed("the loop", worker._turn)
    worker._flush = flushed
    start = worker.start
    worker.start = lambda send: start(clock.timed("delivery", send))


def _nothing(batch: Any, *_: Any) -> Any:
    """A network and a draw whose every id is 1."""
    import torch

    from tokenwire.plugins.engines.cuda.sampler import Drawn

    rows = len(batch.logit_rows)
    sound = torch.ones(rows, dtype=torch.bool)
    return Drawn(torch.ones(rows, dtype=torch.int64), sound, ()), ()


@contextmanager
def _timed_ops(clock: Clock) -> Iterator[None]:
    """Networks built meanwhile have clocks around every op, and around the products."""
    from tokenwire.kernels.ops import Ops
    from tokenwire.plugins.engines.cuda.layers import experts, head, linear

    choose = Ops.choose

    def chosen(*args: Any, **named: Any) -> Ops:
        ops = choose(*args, **named)
        names = {choice.op: f"{choice.op} ({choice.name})" for choice in ops.choices}
        timed = {op: clock.timed(name, getattr(ops, op)) for op, name in names.items()}
        return dataclasses.replace(ops, **timed)

    with ExitStack() as stack:
        stack.enter_context(patch.object(Ops, "choose", chosen))
        _time_settled(stack, linear, "settle", "products of layers", clock)
        _time_settled(stack, head, "settle", "product of the head", clock)
        _time_settled(stack, experts, "settle_stack", "products of experts", clock)
        yield


def _time_settled(stack: ExitStack, module: Any, asked: str, name: str, clock: Clock) -> None:
    """What the module's function `asked` gives for weights that it laid out anew."""
    settle = getattr(module, asked)

    def settled(weight: Any, product: Work) -> Work:
        found: Work = settle(weight, product)
        return found if found is product else clock.timed(name, found)

    stack.enter_context(patch.object(module, asked, settled))


def _print(title: str, steps: list[dict[str, float]]) -> None:
    totals = [sum(step.values()) for step in steps]
    whole = statistics.median(totals)
    print(f"  {title}: {whole * 1e3:.2f} ms of CPU, median of {len(steps)} steps;", end="")
    print(f" least {min(totals) * 1e3:.2f}")
    names = {name for step in steps for name in step}
    medians = {name: statistics.median(step.get(name, 0.0) for step in steps) for name in names}
    for name, seconds in sorted(medians.items(), key=lambda item: -item[1]):
        if seconds >= LEAST * whole:
            print(f"    {name:<32}{seconds * 1e3:9.3f} ms{100 * seconds / whole:6.1f} %")
    rest = whole - sum(each for each in medians.values() if each >= LEAST * whole)
    print(f"    {'the rest':<32}{rest * 1e3:9.3f} ms{100 * rest / whole:6.1f} %")
