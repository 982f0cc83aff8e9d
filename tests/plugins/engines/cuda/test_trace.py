"""The step trace: what Chrome's viewer needs, bounded, and whole whenever the process ends."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.plugins.engines.cuda.driving import engine, job, run
from tokenwire.core.errors import ConfigError
from tokenwire.plugins.engines.cuda.trace import DEVICE, LOOP, Trace

pytestmark = pytest.mark.torch

PHASES = {"schedule", "prepare", "device", "results", "deliver"}


@pytest.mark.parametrize("overlap", [False, True])
def test_every_step_is_in_the_trace(tmp_path: Path, overlap: bool) -> None:
    path = tmp_path / "deep" / "trace.json"
    made = engine(trace=str(path), overlap=overlap)
    found = run(made, job("a", [5, 17, 99], max_tokens=20), job("b", [9], max_tokens=6))
    made._worker._thread.join(10)
    assert len(found["a", 0].ids) == 20
    events = json.loads(path.read_text())
    names = {event["tid"]: event["args"]["name"] for event in events if event["ph"] == "M"}
    assert names == {LOOP: "loop", DEVICE: "device"}
    spans = [event for event in events if event["ph"] == "X"]
    steps = {event["args"]["step"] for event in spans if "args" in event}
    assert len(steps) >= 20
    for phase in PHASES:
        mine = [event for event in spans if event["name"] == phase]
        assert len(mine) >= 20, phase
        assert all(event["dur"] >= 0 for event in mine)
        assert {event["tid"] for event in mine} == {DEVICE if phase == "device" else LOOP}
    counts = [event for event in events if event["ph"] == "C"]
    assert {event["name"] for event in counts} == {"running", "tokens"}
    assert max(event["args"].get("tokens", 0) for event in counts) >= 4
    loop = sorted((e["ts"], e["ts"] + e["dur"]) for e in spans if e["tid"] == LOOP)
    assert all(end <= begin + 0.002 for (_, end), (begin, _) in itertools.pairwise(loop))


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 300), min_size=1, max_size=5), st.integers(300, 9000))
def test_it_is_json_after_every_write_and_never_beyond_its_limit(counts, limit) -> None:
    path = Path(os.environ.get("TMPDIR", "/tmp")) / f"tokenwire-trace-{os.getpid()}.json"
    trace = Trace(str(path), limit)
    try:
        for count in counts:
            for at in range(count):
                trace.span("schedule", LOOP, at, at + 1, at)
                trace.count("running", at, 3)
            trace.flush()
            assert isinstance(json.loads(path.read_bytes()), list)
            assert path.stat().st_size <= limit + 3
    finally:
        trace.close()
        path.unlink()


def test_a_killed_process_leaves_whole_json(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    code = (
        "import sys; from tokenwire.plugins.engines.cuda.trace import Trace\n"
        "trace = Trace(sys.argv[1])\n"
        "at = 0\n"
        "while True:\n"
        "    trace.span('device', 2, at, at + 1, at)\n"
        "    at += 1\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(path)])
    try:
        deadline = time.monotonic() + 60
        while not (path.exists() and path.stat().st_size > 100_000):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert len(json.loads(path.read_bytes())) > 100


def test_a_path_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"trace: cannot write '.*'"):
        Trace(str(tmp_path))


def test_a_full_disk_ends_the_trace_and_nothing_else() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full")
    trace = Trace("/dev/full")
    for at in range(1000):
        trace.span("device", DEVICE, at, at + 1)
    trace.close()
