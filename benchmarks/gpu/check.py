"""The engine on a GPU, part by part: what holds, and how far from the roofline. Writes JSON.

    benchmarks/gpu/check.sh --output result.json [--device cpu] [--parts ops,bench,...] [--small]

Each part runs in a process of its own, for so many seconds at most; one that fails, hangs or dies
is told in the result, and the others go on. The exit code is 1 where a law is broken, or a part did
not come to its end. On a CPU, and with --small, it is a rehearsal: the same code on tiny sizes,
whose times mean nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import distances
import exchanges
import machine
import one_rank
import proofs
import whole
from apart import Asked, Part, run

MOST_SECONDS = 450.0
"""Of all parts: one that begins late gets what is left."""


class Bounded(NamedTuple):
    part: Part
    seconds: float
    shards: int = 1
    """Processes that share it on a GPU: most of its time is compiling."""


PARTS = {
    "machine": Bounded(machine.versions, 30),
    "ops": Bounded(proofs.ops, 100, shards=6),
    "grouped": Bounded(distances.grouped, 45),
    "latent": Bounded(distances.latent, 30),
    "exchange": Bounded(exchanges.exchange, 25),
    "nccl": Bounded(one_rank.one_rank, 40),
    "graphs": Bounded(whole.graphs, 40),
    "invariance": Bounded(whole.invariance, 40),
    "mixtures": Bounded(whole.mixtures, 90),
    "latents": Bounded(whole.latents, 60),
    "dense": Bounded(whole.dense, 60),
    "bench": Bounded(proofs.bench, 60),
}
"""In the order in which they run: what is wanted most comes first."""


def main() -> int:
    options = _options()
    begun, result = time.monotonic(), {"device": options.device, "parts": {}, "clocks": []}
    is_whole = True
    for name in options.parts.split(","):
        part = PARTS[name]
        left = MOST_SECONDS - (time.monotonic() - begun)
        result["clocks"].append(machine.clocks(options.device, begun) | {"before": name})
        shards = part.shards if options.device == "cuda" else 1
        asked = Asked(options.device, options.small, options.model, shards=shards)
        started = time.monotonic()
        found: dict[str, Any] = {"broken": ["no time was left for it"]}
        if left > 0:
            bound = part.seconds if options.device == "cuda" else left
            found = run(part.part, asked, min(bound, left))
        found["seconds"] = round(time.monotonic() - started, 1)
        is_whole &= not found["broken"]
        result["parts"][name] = found
        verdict = "BROKEN" if found["broken"] else "holds"
        print(f"{name}: {verdict} ({found['seconds']} s)", *found["broken"], sep="\n  ", flush=True)
        # Why each time: what is there stays, where the machine is taken away.
        options.output.write_text(json.dumps(result, indent=1) + "\n")
    result["clocks"].append(machine.clocks(options.device, begun) | {"before": "the end"})
    options.output.write_text(json.dumps(result, indent=1) + "\n")
    return 0 if is_whole else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=Path("gpu-check.json"))
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--small", action="store_true", help="tiny sizes: a rehearsal")
    parser.add_argument(
        "--model", type=Path, help="a model folder to measure beside the random ones"
    )
    options = parser.parse_args()
    for name in options.parts.split(","):
        if name not in PARTS:
            parser.error(f"no part is called '{name}'; they are: {', '.join(PARTS)}")
    return options


if __name__ == "__main__":
    sys.exit(main())
