"""The engine on a GPU, part by part: what holds, and how far from the roofline. Writes JSON.

    benchmarks/gpu/check.sh --output result.json [--device cpu] [--parts ops,bench,...] [--small]

Each part has a share of the time; one that fails is told in the result, and the others go on. The
exit code is 1 where a law is broken. On a CPU, and with --small, it is a rehearsal: the same code
on tiny sizes, whose times mean nothing.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import whole

from tokenwire.kernels.bench import measured, roofline
from tokenwire.kernels.grid import reports

PARTS = ("ops", "bench", "graphs", "invariance", "whole")
MOST_SECONDS = {"ops": 150.0, "bench": 90.0}
"""After which a part takes no further case. The rest are bounded by their sizes."""


def machine(device: str) -> dict[str, Any]:
    import torch
    import triton

    found: dict[str, Any] = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "device": device,
    }
    if device == "cuda":
        query = "name,driver_version,clocks.sm,clocks.mem,clocks.max.sm,power.limit"
        told = subprocess.run(
            ["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            check=False,
        )
        found |= {"gpu": torch.cuda.get_device_name(), "nvidia_smi": told.stdout.strip()}
    return found


def ops(device: str, small: bool) -> dict[str, Any]:
    """Every implementation against its reference, in every dtype of the grid, bfloat16 too."""
    begun, lines, broken, skipped = time.monotonic(), [], [], 0
    for report in reports(("silu_mul", "rms_norm") if small else (), device=device):
        skipped += bool(report.skipped)
        if not report.skipped:
            lines.append(report.line())
        if report.faults:
            broken.append(report.line())
        if time.monotonic() - begun > MOST_SECONDS["ops"]:
            broken.append(f"out of time after {len(lines)} cases")
            break
    return {"lines": lines, "broken": broken, "skipped": skipped}


def bench(device: str, small: bool) -> dict[str, Any]:
    """Measured time over the roofline's."""
    begun, found = time.monotonic(), []
    for one in measured(("silu_mul",) if small else (), device=device):
        print(one.line(), flush=True)
        found.append(json.loads(one.as_json()))
        if time.monotonic() - begun > MOST_SECONDS["bench"]:
            break
    limits = roofline(device)
    return {"bandwidth": limits.bandwidth, "peak": limits.peak, "rows": found, "broken": []}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("gpu-check.json"))
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--small", action="store_true", help="tiny sizes: a rehearsal")
    parser.add_argument(
        "--model", type=Path, help="a model folder to measure beside the random ones"
    )
    options = parser.parse_args()
    runs: dict[str, Callable[[], dict[str, Any]]] = {
        "ops": lambda: ops(options.device, options.small),
        "bench": lambda: bench(options.device, options.small),
        "graphs": lambda: whole.graphs(options.device, options.small),
        "invariance": lambda: whole.invariance(options.device, options.small),
        "whole": lambda: whole.speeds(options.device, options.small, options.model),
    }
    result: dict[str, Any] = {"machine": machine(options.device), "parts": {}}
    is_whole = True
    for part in options.parts.split(","):
        begun = time.monotonic()
        try:
            found = runs[part]()
        except Exception:
            found = {"broken": [traceback.format_exc()]}
        found["seconds"] = round(time.monotonic() - begun, 1)
        is_whole &= not found["broken"]
        result["parts"][part] = found
        verdict = "BROKEN" if found["broken"] else "holds"
        print(f"{part}: {verdict} ({found['seconds']} s)", *found["broken"], sep="\n  ", flush=True)
        # Why each time: what is there stays, where the machine is taken away.
        options.output.write_text(json.dumps(result, indent=1) + "\n")
    return 0 if is_whole else 1


if __name__ == "__main__":
    sys.exit(main())
