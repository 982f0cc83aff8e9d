"""The simulator's small cases: ours is nowhere less balanced, and better where loads burst."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

SCRIPT = Path(__file__).parents[6] / "benchmarks" / "expert_balance.py"


def simulate(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, SCRIPT, *options],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )


def test_no_case_is_worse_and_bursty_ones_are_better() -> None:
    done = simulate("--quick", "--layers", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    for kind in ("uniform", "zipf", "drifting", "one hot", "topics", "bursts", "grouped"):
        assert kind in done.stdout
    assert "WORSE" not in done.stdout


def test_a_recorded_load(tmp_path: Path) -> None:
    np.save(tmp_path / "load.npy", np.random.default_rng(0).poisson(2, (20, 2, 8)))
    done = simulate("--load", str(tmp_path / "load.npy"), "--slots", "12", "--ranks", "4")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "recorded" in done.stdout
