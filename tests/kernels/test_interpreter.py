"""Triton's kernels against the references in its interpreter: odd shapes, poisoned memory, batches
in another order. Why a process of its own: Triton decides at import whether it interprets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.torch
pytest.importorskip("torch")
pytest.importorskip("triton", reason="no Triton for this platform")

from tokenwire.kernels.ops import all_ops  # noqa: E402

SCRIPT = Path(__file__).with_name("interpreted.py")
OPS = [op.name for op in all_ops() if "triton" in {one.name for one in op.implementations}]


@pytest.fixture(scope="module")
def told():
    environ = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "error", SCRIPT], env=environ, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("op", OPS)
def test_the_kernels_of_an_op_hold_every_law(told, op):
    ran = [
        one
        for one in told
        if one.get("op") == op and one["implementation"] == "triton" and not one["skipped"]
    ]
    assert ran, f"{op}: no case runs in the interpreter"
    assert [(one["case"], one["faults"]) for one in ran if one["faults"]] == []


def test_other_implementations_hold_them_too(told):
    assert [one for one in told if one.get("faults")] == []


def test_the_interpreter_still_adds_bfloat16_wrongly(told):
    """When this fails, a release has mended it: then kernels may compute in bfloat16, and the casts
    and the constants that only the interpreter needs can go."""
    assert told[-1] == {"bfloat16": False}
