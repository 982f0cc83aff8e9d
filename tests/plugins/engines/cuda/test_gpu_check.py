"""The script for GPUs, rehearsed on a CPU: it runs whole, says what holds, fails where it must."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.torch

ROOT = Path(__file__).parents[4]
HERE = ROOT / "benchmarks" / "gpu"
MEASURED = ("grouped", "latent", "exchange")
PARTS = ("ops", *MEASURED, "nccl", "graphs", "invariance", "mixtures", "latents", "dense")
WITHOUT_DTYPE = {"ep_plan", "sample", "penalties", "token_mask", "logprobs"}
"""Ops of whole numbers, or of float32 alone."""


def check(output: Path, *options: str) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("torch")
    pytest.importorskip("triton")
    return subprocess.run(
        [HERE / "check.sh", "--device", "cpu", "--small", "--output", output, *options],
        env={**os.environ, "PYTHON": sys.executable, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )


def told(folder: Path, script: str) -> Any:
    """What a script that stands beside the check's modules prints, as JSON."""
    pytest.importorskip("torch")
    pytest.importorskip("triton")
    path = folder / "told.py"
    path.write_text(script)
    done = subprocess.run(
        [sys.executable, path],
        env={**os.environ, "PYTHONPATH": f"{HERE}:{folder}", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_every_part_holds(tmp_path: Path) -> None:
    done = check(tmp_path / "result.json", "--parts", ",".join(["machine", *PARTS]))
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads((tmp_path / "result.json").read_text())
    parts = result["parts"]
    assert list(parts) == ["machine", *PARTS]
    assert not any(part["broken"] for part in parts.values())
    assert {"python", "torch", "triton"} <= {name for name, _ in parts["machine"]["facts"]}
    assert [each["before"] for each in result["clocks"]] == ["machine", *PARTS, "the end"]
    assert parts["ops"]["lines"]
    measured = {row["op"] for name in MEASURED for row in parts[name]["rows"]}
    assert measured >= {
        "grouped_matmul",
        "grouped_matmul_masked",
        "fp8_grouped_matmul",
        "fp8_grouped_matmul_masked",
        "silu_mul_quant",
        "layer of experts",
        "mla_decode",
        "ep_plan",
        "ep_pack",
        "ep_unpack",
        "ep_return",
        "ep_combine",
    }
    assert all(row["distance"] > 0 for name in MEASURED for row in parts[name]["rows"])
    held = " ".join(parts["nccl"]["holds"])
    for law in ("all_reduce", "all_to_all", "exchanged", "gathered, masked", "without a group"):
        assert law in held
    for name in ("mixtures", "latents", "dense"):
        assert [row["batch"] for row in parts[name]["rows"]] == [1, 4]
    assert len(parts["graphs"]["holds"]) == 6
    assert len(parts["invariance"]["holds"]) == 3


def test_a_part_that_fails_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    options = "--parts", "dense,exchange", "--model", str(tmp_path / "none")
    done = check(tmp_path / "result.json", *options)
    assert done.returncode == 1
    result = json.loads((tmp_path / "result.json").read_text())
    assert "ConfigError" in result["parts"]["dense"]["broken"][0]
    assert result["parts"]["dense"]["rows"]
    assert not result["parts"]["exchange"]["broken"]


def test_a_part_that_hangs_or_dies_costs_what_it_had_not_found(tmp_path: Path) -> None:
    (tmp_path / "odd.py").write_text(
        "import os, signal, time\n"
        "def hangs(asked):\n"
        "    yield 'rows', asked.shard\n"
        "    if asked.shard:\n"
        "        time.sleep(600)\n"
        "def dies(asked):\n"
        "    yield 'rows', 1\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "def raises(asked):\n"
        "    yield 'rows', 1\n"
        "    raise ValueError('no')\n"
    )
    found = told(
        tmp_path,
        "import json, apart, odd\n"
        "if __name__ == '__main__':\n"
        "    apart.PRELOADED.clear()\n"
        "    two = apart.Asked('cpu', shards=2)\n"
        "    every = [apart.run(odd.hangs, two, 3.0)]\n"
        "    every += [apart.run(odd.dies, apart.Asked('cpu'), 60)]\n"
        "    every += [apart.run(odd.raises, apart.Asked('cpu'), 60)]\n"
        "    print(json.dumps(every))\n",
    )
    hung, dead, raised = found
    assert sorted(hung["rows"]) == [0, 1]
    assert "out of time after 3 s" in hung["broken"][0]
    assert dead == {"rows": [1], "broken": ["its process died: exit code -9"]}
    assert raised["rows"] == [1]
    assert "ValueError: no" in raised["broken"][0]


def test_the_floor_is_the_published_one(tmp_path: Path) -> None:
    """Of Qwen3-30B-A3B on an H200 at a context of 2k: 1.43 ms for one sequence, 16.8 ms for 64."""
    found = told(
        tmp_path,
        "import json, whole\n"
        "rate = dict(bandwidth=4.3e12, peak=790e12, context=2048)\n"
        "print(json.dumps([whole.floor(whole.QWEN3_30B, **rate, batch=n) for n in (1, 64)]))\n",
    )
    assert found == pytest.approx([1.43e-3, 16.8e-3], rel=0.02)


def test_every_op_is_proven_in_bfloat16() -> None:
    torch = pytest.importorskip("torch")
    from tokenwire.kernels.grid import cases

    without = {
        op.name
        for op, every in cases()
        if not any(case.signature.dtype == torch.bfloat16 for case in every)
    }
    assert without == WITHOUT_DTYPE
