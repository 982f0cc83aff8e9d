"""CPU of the engine's policy a step: schedule, prepare the inputs, retire.

    python benchmarks/engine_policy.py [--running 256] [--steps 400] [--profile]

Sequences that decode, without a network and without torch: the whole cost that the CPU adds to a
step whose device work is free. `inputs` are the arrays of `plugins/engines/cuda/inputs.py`, on
rows as the runner keeps them. For each batch size, the median and the best of the steps in
microseconds. The aim is less than 1000 a step at 256 sequences for all three together.
"""

from __future__ import annotations

import argparse
import cProfile
import platform
import pstats
import statistics
import sys
import time

from tokenwire.core import blocks
from tokenwire.core.tokens import JobSampling
from tokenwire.plugins.engines.cuda.inputs import prepare
from tokenwire.plugins.engines.cuda.policy.kv import BlockTables
from tokenwire.plugins.engines.cuda.policy.limits import GroupSpec, Limits
from tokenwire.plugins.engines.cuda.policy.scheduler import Scheduler
from tokenwire.plugins.engines.cuda.policy.sequence import Sequence
from tokenwire.plugins.engines.cuda.rows import Rows

BLOCK_SIZE = 16
PROMPT = 100
PARTS = ("schedule", "inputs", "retire")


def deck(running: int, steps: int, windows: tuple[int, ...]) -> tuple[Scheduler, Rows]:
    """All sequences admitted and in their output, at lengths that differ."""
    longest = PROMPT + BLOCK_SIZE + steps + 32
    width = -(-longest // BLOCK_SIZE)
    groups = [GroupSpec(running * width + 1, window) for window in windows]
    limits = Limits(running, 16 * 1024, BLOCK_SIZE, longest)
    kv = BlockTables(groups, BLOCK_SIZE, blocks.root("bench"))
    scheduler = Scheduler(limits, kv)
    rows = Rows(running, width, windows, BLOCK_SIZE)
    for index in range(running):
        prompt = range(index, index + PROMPT + index % BLOCK_SIZE)
        seq = Sequence(f"job{index}", prompt, max_tokens=longest)
        reason = scheduler.add(seq)
        assert not reason, reason
        rows.take(seq, JobSampling(), 0)
    while True:
        plan = scheduler.schedule(0.0)
        for row in plan.rows:
            scheduler.retire(row, (1,) if row.samples else ())
        if plan.decode_rows == running:
            return scheduler, rows


def measure(running: int, steps: int, windows: tuple[int, ...]) -> list[tuple[float, ...]]:
    """Seconds of each part of each step."""
    scheduler, batch = deck(running, steps, windows)
    found: list[tuple[float, ...]] = []
    for _ in range(steps):
        begin = time.perf_counter()
        plan = scheduler.schedule(0.0)
        planned = time.perf_counter()
        prepare(plan.rows, plan.decode_rows, batch, BLOCK_SIZE)
        prepared = time.perf_counter()
        for row in plan.rows:
            scheduler.retire(row, (1,))
        done = time.perf_counter()
        assert plan.decode_rows == running
        found.append((planned - begin, prepared - planned, done - prepared))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--running", type=int, nargs="*", default=[32, 256])
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    print(f"{platform.machine()}, Python {platform.python_version()}, microseconds a step")
    print(f"{'sequences':>10} {'windows':>10} " + " ".join(f"{p:>16}" for p in (*PARTS, "all")))
    profile = cProfile.Profile()
    for running in options.running:
        for windows in ((0,), (0, 64)):
            if options.profile:
                profile.enable()
            found = measure(running, options.steps, windows)
            profile.disable()
            columns = [*zip(*found, strict=True), [sum(parts) for parts in found]]
            cells = [f"{statistics.median(c) * 1e6:8.0f} {min(c) * 1e6:7.0f}" for c in columns]
            print(f"{running:>10} {','.join(map(str, windows)):>10} " + " ".join(cells))
    if options.profile:
        pstats.Stats(profile, stream=sys.stdout).sort_stats("tottime").print_stats(20)


if __name__ == "__main__":
    main()
