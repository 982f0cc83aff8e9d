"""The example protocol, installed into an environment of its own, listed, conformed and served."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import httpx
import pytest

from tests.clients.live import live_server

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "ndjson"
CONFIG = """
models:
  - name: mock
    engine: mock
    tokenizer: bytes
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment with the example in it; Tokenwire and its libraries come from this one's
    folder, so that nothing is downloaded. Gives its folder of scripts."""
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder, with_pip=False, symlinks=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = folder / "lib" / version / "site-packages"
    mine = sysconfig.get_path("purelib")
    (packages / "beside.pth").write_text(f"import site; site.addsitedir({mine!r})\n")
    python = folder / "bin" / "python"
    install = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    copy = tmp_path_factory.mktemp("source") / "ndjson"
    subprocess.run(["cp", "-r", str(EXAMPLE), str(copy)], check=True)
    run(python, *install, str(copy))
    return folder / "bin"


def run(program: Path, *arguments: str) -> str:
    env = {**os.environ, "NO_COLOR": "1", "COLUMNS": "200"}
    done = subprocess.run(
        [str(program), *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env=env,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def command(environment: Path) -> Path:
    """Tokenwire's own command, in that environment's Python."""
    path = environment / "tokenwire"
    path.write_text(
        f"#!{environment / 'python'}\n"
        "import sys\n"
        "from tokenwire.core.cli import main\n"
        "sys.exit(main())\n"
    )
    path.chmod(0o755)
    return path


def test_it_is_small() -> None:
    def lines(path: Path) -> int:
        return sum(bool(line.strip()) for line in path.read_text().splitlines())

    assert lines(EXAMPLE / "tokenwire_ndjson.py") <= 45
    assert lines(EXAMPLE / "tests" / "test_ndjson.py") <= 20


def test_it_is_listed_with_its_owner_and_version(environment: Path) -> None:
    listed = run(command(environment), "plugins")
    row = next(line for line in listed.splitlines() if "ndjson" in line)
    assert row.split()[:3] == ["codec", "ndjson", "ndjson"]
    assert "tokenwire-ndjson 1.0.0" in row


def test_it_conforms_from_the_shell(environment: Path) -> None:
    assert "conforms" in run(command(environment), "conform", "ndjson")


def test_its_own_test_passes(environment: Path) -> None:
    tests = str(EXAMPLE / "tests")
    options = ["-q", "-p", "no:cacheprovider", "--rootdir", tests, "-c", os.devnull]
    assert " passed" in run(environment / "python", "-m", "pytest", *options, tests)


def test_it_is_served(environment: Path, tmp_path: Path) -> None:
    with live_server(CONFIG, tmp_path, command=command(environment)) as server:
        whole = httpx.post(f"{server.url}/ndjson", json={"model": "mock", "say": "hi"})
        assert whole.headers["content-type"] == "application/x-ndjson"
        kinds = [line.partition(",")[0] for line in whole.text.splitlines()]
        assert kinds[0] == '{"type":"started"'
        assert kinds[-1] == '{"type":"usage"'
        ask = {"model": "mock", "say": "hi", "stream": True}
        with httpx.stream("POST", f"{server.url}/ndjson", json=ask) as reply:
            streamed = "".join(reply.iter_text())
        without_ids = [line for line in streamed.splitlines() if "part_delta" in line]
        assert without_ids == [line for line in whole.text.splitlines() if "part_delta" in line]
        wrong = httpx.post(f"{server.url}/ndjson", json={"model": "mock"})
        assert wrong.status_code == 400
        assert "say" in wrong.json()["message"]
