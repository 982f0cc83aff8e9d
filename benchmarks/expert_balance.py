"""Balancedness of the published expert balance and of ours, on the same loads, in one run.

    python benchmarks/expert_balance.py [--quick] [--record] [--load FILE.npy --slots N --ranks R]

Each case is 200 steps of load, made up or recorded: both policies see the first 100 and are
measured on those (`window`) and on the 100 that follow (`next`). Balancedness is mean over max of
the ranks, for each layer of each step, averaged; a cell is `published ours`. Times are the best of
a few runs, CPU milliseconds of the thread; the last lines are the size that the time is meant for.
`--record` makes the recorded loads, in this run (expert_loads.py; needs torch and a tokenizer): a
model reads text in the engine, and its counts are used. A load of a file is an array [steps,
layers, experts] of counts; its first half is the window.

Exits with 1 where ours is less balanced on the window, or where a bursty load with room for choice
is not better balanced. Set OPENBLAS_NUM_THREADS=1 on a machine that has other work.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import msgspec
import numpy as np

from tokenwire.plugins.engines.cuda.policy.experts.balance import mean_balancedness
from tokenwire.plugins.engines.cuda.policy.experts.bursty import per_step
from tokenwire.plugins.engines.cuda.policy.experts.placement import Floats, Layout, Placement
from tokenwire.plugins.engines.cuda.policy.experts.published import published

STEPS = 100
TOKENS = 64
"""A step sends to an expert, on average."""
ROUNDING = 1e-6
Make = Callable[[np.random.Generator, int, int, Layout], Floats]
"""(random numbers, steps, layers, layout) -> mean loads [steps, layers, experts], of any scale."""


def uniform(rng: np.random.Generator, steps: int, layers: int, layout: Layout) -> Floats:
    return np.ones((steps, layers, layout.experts))


def zipf(rng: np.random.Generator, steps: int, layers: int, layout: Layout) -> Floats:
    """The n-th expert gets a share of 1/n, in every step."""
    ranks = np.stack([rng.permutation(layout.experts) for _ in range(layers)])
    return np.broadcast_to(1 / (1 + ranks), (steps, layers, layout.experts))


def topics(rng: np.random.Generator, steps: int, layers: int, layout: Layout) -> Floats:
    """Bursty: each step is of one of six kinds of text, each with hot experts of its own."""
    shape = (6, layers, layout.experts)
    profiles = np.where(rng.random(shape) < max(0.06, 1 / layout.experts), 20, 1)
    return (profiles * rng.gamma(2, 0.5, shape))[rng.integers(0, 6, steps)]


def bursts(rng: np.random.Generator, steps: int, layers: int, layout: Layout) -> Floats:
    """Bursty: in each step other experts are hot, with nothing to learn from the step before."""
    shape = (steps, layers, layout.experts)
    return rng.gamma(1, 1, shape) * np.where(rng.random(shape) < 0.03, 20, 1)


def drifting(rng: np.random.Generator, steps: int, layers: int, layout: Layout) -> Floats:
    """What is hot wanders from one set of experts to another."""
    start, end = rng.gamma(0.5, 1, (2, layers, layout.experts))
    share = np.linspace(0, 1, steps)[:, None, None]
    return start * (1 - share) + end * share


def one_hot(rng: np.random.Generator, steps: int, layers: int, layout: Layout) -> Floats:
    """One expert of each layer gets half of everything."""
    mean = np.ones((layers, layout.experts))
    mean[np.arange(layers), rng.integers(0, layout.experts, layers)] = layout.experts
    return np.broadcast_to(mean, (steps, layers, layout.experts))


def grouped(rng: np.random.Generator, steps: int, layers: int, layout: Layout) -> Floats:
    """Bursty: a router limited to groups, of which each step prefers a few."""
    kinds = rng.gamma(0.7, 1, (6, layers, layout.groups))[rng.integers(0, 6, steps)]
    size = layout.experts // layout.groups
    within = rng.gamma(1, 1, (layers, layout.experts))
    return np.repeat(kinds, size, axis=2) * within


KINDS: dict[str, Make] = {
    "uniform": uniform,
    "zipf": zipf,
    "drifting": drifting,
    "one hot": one_hot,
    "topics": topics,
    "bursts": bursts,
    "grouped": grouped,
}
BURSTY = ("topics", "bursts", "grouped")
SIZES = ((8, 2), (8, 4), (8, 8), (64, 4), (64, 8), (64, 32), (256, 8), (256, 32), (256, 64))
TARGET = Layout(256, 320, 64)
TARGET_LAYERS = 58
RECORDED = (Layout(32, 36, 4), Layout(32, 40, 8), Layout(32, 48, 8), Layout(32, 48, 16))


class Result(msgspec.Struct, frozen=True):
    kind: str
    layout: Layout
    window: tuple[float, float]
    """(published, ours)."""
    after: tuple[float, float]
    milliseconds: tuple[float, float]

    @property
    def has_choice(self) -> bool:
        return self.layout.slots > self.layout.ranks

    @property
    def is_worse(self) -> bool:
        return self.window[1] < self.window[0] - ROUNDING

    @property
    def is_better(self) -> bool:
        return self.window[1] > self.window[0] + ROUNDING

    def line(self) -> str:
        layout, pairs = self.layout, (self.window, self.after)
        cells = "   ".join(f"{one:.4f} {other:.4f}" for one, other in pairs)
        shape = f"{layout.experts:>4} {layout.slots:>5} {layout.ranks:>5} {layout.nodes:>5}"
        times = " ".join(f"{each:6.1f}" for each in self.milliseconds)
        return f"{self.kind:>9} {shape}   {cells}   {times}{'   WORSE' if self.is_worse else ''}"


def layouts() -> Iterator[Layout]:
    """Each size without redundant experts, with one more a rank, and with two; those of 8 ranks a
    node also hierarchical, 8 groups."""
    for experts, ranks in SIZES:
        for more in (0, 1, 2):
            slots = experts + more * ranks
            yield Layout(experts, slots, ranks)
            if ranks >= 16 and slots > ranks:
                yield Layout(experts, slots, ranks, nodes=ranks // 8, groups=8)


def load_of(kind: str, seed: int, layers: int, layout: Layout) -> Floats:
    """Counts [2 * STEPS, layers, experts]; router groups are 8 where the layout has none."""
    rng = np.random.default_rng(seed)
    groups = layout.groups if layout.groups > 1 else min(8, layout.experts // 2)
    routed = msgspec.structs.replace(layout, groups=groups)
    mean = KINDS[kind](rng, 2 * STEPS, layers, routed)
    mean = mean / mean.mean(axis=2, keepdims=True) * TOKENS
    return rng.poisson(mean).astype(np.float32)


def measure(kind: str, load: Floats, layout: Layout, tries: int) -> Result:
    half = len(load) // 2
    window, after = load[:half], load[half:]
    placed, times = [], []
    for policy in (published, per_step):
        best, placement = timed(policy, window, layout, tries)
        placed.append(placement)
        times.append(best * 1000)
    first, second = (
        (mean_balancedness(part, placed[0]), mean_balancedness(part, placed[1]))
        for part in (window, after)
    )
    return Result(kind, layout, first, second, (times[0], times[1]))


def timed(
    policy: Callable[[Floats, Layout], Placement], load: Floats, layout: Layout, tries: int
) -> tuple[float, Placement]:
    best = float("inf")
    for _ in range(tries):
        begin = time.thread_time()
        placement = policy(load, layout)
        best = min(best, time.thread_time() - begin)
    return best, placement


def cases(options: argparse.Namespace) -> Iterator[Result]:
    if options.load:
        load = np.load(options.load).astype(np.float32)
        layout = Layout(load.shape[2], options.slots, options.ranks, options.nodes, options.groups)
        yield measure("recorded", load, layout, 3)
        return
    if options.record:
        yield from recorded(options)
    if options.only_recorded:
        return
    grid = list(layouts())
    if options.quick:
        grid = [layout for layout in grid if layout.experts <= 64][::3]
    for index, layout in enumerate(grid):
        for kind in KINDS:
            yield measure(kind, load_of(kind, index, options.layers, layout), layout, 1)
    if not options.quick:
        for kind in KINDS:
            yield measure(kind, load_of(kind, 1, TARGET_LAYERS, TARGET), TARGET, 7)


def recorded(options: argparse.Namespace) -> Iterator[Result]:
    missing = [name for name in ("torch", "tokenizers") if find_spec(name) is None]
    if missing:
        print(f"left out: recorded loads, which need {' and '.join(missing)}")
        return
    import expert_loads

    tokenizer = options.tokenizer or expert_loads.TOKENIZER
    for kind, load in expert_loads.record(options.steps, tokenizer):
        for layout in RECORDED:
            yield measure(kind, load, layout, 3)


def summary(results: list[Result]) -> None:
    """A line a kind: means over its cases, and how many are better, equal and worse."""
    by_kind: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        by_kind[result.kind].append(result)
    print("\n     kind cases   window          next            better equal worse   next worse")
    for kind, found in by_kind.items():
        pairs = [[each.window for each in found], [each.after for each in found]]
        cells = "   ".join("{:.4f} {:.4f}".format(*np.mean(pair, axis=0)) for pair in pairs)
        better, worse = sum(r.is_better for r in found), sum(r.is_worse for r in found)
        later = sum(r.after[1] < r.after[0] - ROUNDING for r in found)
        counts = f"{better:>6} {len(found) - better - worse:>5} {worse:>5} {later:>12}"
        print(f"{kind:>9} {len(found):>5}   {cells}   {counts}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few and small cases")
    parser.add_argument("--layers", type=int, default=4, help="of the cases that are not timed")
    parser.add_argument("--record", action="store_true", help="record loads, and measure on them")
    parser.add_argument("--only-recorded", action="store_true", help="no made-up loads")
    parser.add_argument("--steps", type=int, default=2 * STEPS, help="of recorded loads")
    parser.add_argument("--tokenizer", type=Path, help="a tokenizer.json to record with")
    parser.add_argument("--load", help="a recorded load, .npy")
    parser.add_argument("--slots", type=int, default=320)
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--groups", type=int, default=1)
    print("     kind   E slots ranks nodes   window          next            ms: published, ours")
    results = []
    for result in cases(parser.parse_args()):
        print(result.line())
        results.append(result)
    summary(results)
    failed = [r for r in results if r.is_worse]
    failed += [r for r in results if r.kind in BURSTY and r.has_choice and not r.is_better]
    for result in failed:
        print(f"not as balanced as it has to be: {result.line()}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
