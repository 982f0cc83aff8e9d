"""The script for GPUs, rehearsed on a CPU: it runs whole, says what holds, fails where it must."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.torch

ROOT = Path(__file__).parents[4]
PARTS = "ops,graphs,invariance,whole"


def check(output: Path, *options: str, **environ: str) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("torch")
    pytest.importorskip("triton")
    script = ROOT / "benchmarks" / "gpu" / "check.sh"
    return subprocess.run(
        [script, "--device", "cpu", "--small", "--output", output, *options],
        env={**os.environ, "PYTHON": sys.executable, **environ},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )


def test_every_part_holds(tmp_path: Path) -> None:
    done = check(tmp_path / "result.json", "--parts", PARTS)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads((tmp_path / "result.json").read_text())
    assert list(result["parts"]) == PARTS.split(",")
    assert not any(part["broken"] for part in result["parts"].values())
    assert result["machine"]["torch"]
    assert result["parts"]["ops"]["lines"]
    assert [row["batch"] for row in result["parts"]["whole"]["rows"]] == [1, 4]


def test_a_part_that_fails_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    options = "--parts", "whole,invariance", "--model", str(tmp_path / "none")
    done = check(tmp_path / "result.json", *options)
    assert done.returncode == 1
    result = json.loads((tmp_path / "result.json").read_text())
    assert "ConfigError" in result["parts"]["whole"]["broken"][0]
    assert not result["parts"]["invariance"]["broken"]
