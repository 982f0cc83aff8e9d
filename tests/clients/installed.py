"""The clients that `make test-clients` installs apart from the server, and how they are run."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

__all__ = ("NODE", "PROGRAMS", "agent", "node", "python", "run")

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"
NODE = HERE / "node"
GIVEN = os.environ.get("TOKENWIRE_CLIENTS")
ENVIRONMENT = Path(GIVEN or HERE.parents[1] / ".venv-clients")
WITHIN_S = 240.0


def _present(path: Path) -> str:
    if not path.exists():
        # Why: who names the place means the tests to run.
        assert not GIVEN, f"{path} is absent, though TOKENWIRE_CLIENTS is {GIVEN}"
        pytest.skip(f"{path} is absent; `make test-clients` installs the clients")
    return str(path)


def python() -> str:
    """The interpreter that has the clients of PyPI."""
    return _present(ENVIRONMENT / "bin" / "python")


def node() -> str:
    """Node.js, as the same environment has it."""
    _present(NODE / "node_modules")
    return _present(ENVIRONMENT / "bin" / "node")


def agent(script: str) -> list[str]:
    """How an agent of npm is started."""
    return [node(), _present(NODE / "node_modules" / script)]


def run(command: Sequence[str], environ: Mapping[str, str], folder: Path) -> tuple[int, str, str]:
    """Exit status, output and errors of a command that sees nothing of our own environment; it and
    what it started are ended after a while."""
    path = f"{ENVIRONMENT / 'bin'}:/usr/local/bin:/usr/bin:/bin"
    process = subprocess.Popen(
        command,
        env={"HOME": str(folder), "LANG": "C.UTF-8", "PATH": path, **environ},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, errors = process.communicate(timeout=WITHIN_S)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    return process.returncode, out.decode(), errors.decode()
