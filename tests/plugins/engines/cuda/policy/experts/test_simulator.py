"""The simulator's small cases: ours is nowhere less balanced, and better where loads burst."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.real_tokenizers import published

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


@pytest.mark.torch
def test_loads_are_recorded_in_the_engine_and_measured_in_the_same_run() -> None:
    pytest.importorskip("torch")
    tokenizer = published("qwen3") / "tokenizer.json"
    options = "--record", "--only-recorded", "--steps", "16", "--tokenizer", str(tokenizer)
    done = simulate(*options)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    for kind in ("mixed", "waves", "prompts"):
        found = [row for row in rows if row[:1] == [kind] and len(row) == 11]
        assert len(found) == 4
        assert all(0 < float(value) <= 1 for row in found for value in row[5:9])


def test_without_torch_what_is_left_out_is_told() -> None:
    script = (
        "import runpy, sys\n"
        "sys.modules['torch'] = None\n"
        f"sys.argv = [{str(SCRIPT)!r}, '--record', '--only-recorded']\n"
        f"runpy.run_path({str(SCRIPT)!r}, run_name='__main__')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "left out: recorded loads, which need torch" in done.stdout
