"""The engine on one thread of a CPU, beside vLLM and transformers where there are these.

    python benchmarks/engine.py [--vllm PYTHON] [--network qwen3moe] [--runs 3] [--no-parts]

64 prompts of 128 random ids, 64 ids out of each, greedy, eos ignored, the same model files for
all, each side in its own process on the same core with one thread, in turns. vLLM is run by
another interpreter, which has it installed. Figures are the best of the runs; a decode's seconds
are those of the whole less those of a run with one id out. Tokens a CPU second count the CPU of all
threads of a side, which a busy machine inflates less. Then where our step goes: engine_parts.py.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from engine_models import NETWORKS, VOCABULARY, model_folder
from engine_parts import show_parts
from engine_sides import tokenwire_settings

OURS = "tokenwire"
HERE = Path(__file__).parent


class Side:
    """A process with one engine in it."""

    def __init__(self, name: str, python: str, model: Path, dtype: str, load: dict[str, int]):
        self.name = name
        command = [python, str(HERE / "engine_sides.py"), name, str(model), dtype, json.dumps(load)]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if name == "vllm" else None,
            text=True,
        )
        self.ready = self._read()
        self.whole: list[dict[str, Any]] = []
        self.first: list[dict[str, Any]] = []

    def run(self, prompts: list[list[int]], out: int) -> None:
        for count, found in ((out, self.whole), (1, self.first)):
            assert self._process.stdin is not None
            line = json.dumps({"prompts": prompts, "out": count})
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
            found.append(self._read())

    def close(self) -> None:
        self._process.communicate()

    def best(self, load: dict[str, int], clock: str) -> tuple[float, float, float]:
        """Tokens a second: out of the whole, of prompts, of the decode."""
        count, out = load["prompts"], load["out"]
        whole = min(run[clock] for run in self.whole)
        first = min(run[clock] for run in self.first)
        decode = max(whole - first, 1e-9)
        return count * out / whole, count * load["tokens"] / first, count * (out - 1) / decode

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"engine.py: {self.name} ended with {self._process.wait()}")
        found: dict[str, Any] = json.loads(line)
        return found


def main() -> None:
    options = _options()
    if find_spec("transformers") is None:
        raise SystemExit("engine.py: the model is made by transformers: pip install transformers")
    pythons = {OURS: sys.executable, "vllm": options.vllm, "transformers": sys.executable}
    names = {name: pythons[name] for name in (OURS, *options.beside) if pythons[name]}
    load = {
        "prompts": options.prompts,
        "tokens": options.tokens,
        "out": options.out,
        "core": options.core,
    }
    print(f"python {platform.python_version()}, {platform.machine()}, core {options.core}")
    print(
        f"{options.prompts} prompts of {options.tokens}, {options.out} out, best of {options.runs}"
    )
    if "vllm" not in names:
        print("no rows of vLLM: --vllm PYTHON names an interpreter that has it")
    for dtype in options.dtypes:
        model = model_folder(options.models, dtype, options.network)
        _compare(names, model, dtype, load, options.runs)
        if options.parts:
            show_parts(model, dtype, load)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--vllm", help="a Python that has vLLM for CPUs installed")
    parser.add_argument("--network", choices=NETWORKS, default="qwen3")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--dtypes", nargs="*", default=["float32", "bfloat16"])
    parser.add_argument("--models", type=Path, default=Path(".cache/bench"))
    parser.add_argument("--prompts", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--out", type=int, default=64)
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    parser.add_argument("--beside", nargs="*", default=["vllm", "transformers"])
    parser.add_argument("--no-parts", dest="parts", action="store_false")
    return parser.parse_args()


def _compare(
    names: dict[str, str], model: Path, dtype: str, load: dict[str, int], runs: int
) -> None:
    sides = [Side(name, python, model, dtype, load) for name, python in names.items()]
    try:
        for seed in range(runs):
            prompts = _prompts(seed, load)
            for side in sides:
                side.run(prompts, load["out"])
    finally:
        for side in sides:
            side.close()
    ours = sides[0]
    for clock, title in (("seconds", "a second"), ("cpu", "a CPU second")):
        mine = ours.best(load, clock)
        print(f"\n{dtype}, {title:<14}{'tokens':>9}{'prefill':>9}{'decode':>9}  ours / it")
        for side in sides:
            figures = side.best(load, clock)
            ratios = [one / other for one, other in zip(mine, figures, strict=True)]
            told = "" if side is ours else "  " + " ".join(f"{ratio:.2f}" for ratio in ratios)
            name = f"{side.name} {side.ready['version']}".strip()
            print(f"  {name:<24}" + "".join(f"{figure:9.0f}" for figure in figures) + told)
    _tell_ids(sides)
    _tell_memory(ours, model, load, dtype)


def _tell_ids(sides: list[Side]) -> None:
    ours, *others = sides
    for other in others:
        pairs = list(zip(ours.whole[0]["ids"], other.whole[0]["ids"], strict=True))
        same = sum(one == another for one, another in pairs)
        print(f"  greedy ids as {other.name} gives: {same} of {len(pairs)} answers")


def _tell_memory(ours: Side, model: Path, load: dict[str, int], dtype: str) -> None:
    weights = sum(file.stat().st_size for file in model.glob("*.safetensors"))
    kv = tokenwire_settings(str(model), dtype, load)["kv_gib"] * (1 << 30)
    grown = max(run["grown"] for run in ours.whole)
    files = ours.whole[-1]["files"]
    print(
        f"  resident memory grew by {grown / 1e6:.0f} MB at most, {files / 1e6:.0f} of it pages of "
        f"libraries; weights {weights / 1e6:.0f} and KV {kv / 1e6:.0f}: the rest is "
        f"{(grown - files) / (weights + kv):.2f} times their sum"
    )


def _prompts(seed: int, load: dict[str, int]) -> list[list[int]]:
    chance = random.Random(seed)
    count, tokens = load["prompts"], load["tokens"]
    return [[chance.randrange(1000, VOCABULARY) for _ in range(tokens)] for _ in range(count)]


if __name__ == "__main__":
    main()
