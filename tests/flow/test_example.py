"""The examples, installed into an environment of their own, listed, conformed and served."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import httpx
import pytest

from tests.clients.live import live_server

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
KINDS = {"ndjson": "codec", "echo": "engine"}
CONFIG = """
models:
  - name: mock
    engine: mock
    tokenizer: bytes
  - name: echo
    engine: {plugin: echo, step_ms: 0.1}
    tokenizer: bytes
    dialect: plain
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment with the examples in it; Tokenwire and its libraries come from this one's
    folder, so that nothing is downloaded. Gives its folder of scripts."""
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder, with_pip=False, symlinks=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = folder / "lib" / version / "site-packages"
    mine = sysconfig.get_path("purelib")
    (packages / "beside.pth").write_text(f"import site; site.addsitedir({mine!r})\n")
    python = folder / "bin" / "python"
    install = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    copies = tmp_path_factory.mktemp("source")
    for name in KINDS:
        subprocess.run(["cp", "-r", str(EXAMPLES / name), str(copies)], check=True)
    run(python, *install, *(str(copies / name) for name in KINDS))
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


def test_the_protocol_is_small() -> None:
    def lines(path: Path) -> int:
        return sum(bool(line.strip()) for line in path.read_text().splitlines())

    assert lines(EXAMPLES / "ndjson" / "tokenwire_ndjson.py") <= 45
    assert lines(EXAMPLES / "ndjson" / "tests" / "test_ndjson.py") <= 20


def test_what_the_guide_shows_of_the_engine_is_in_it() -> None:
    guide = (ROOT / "plugins" / "README.md").read_text()
    section = re.split(r"^## ", guide.split("\n## An engine\n")[1], flags=re.MULTILINE)[0]
    shown = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    source = (EXAMPLES / "echo" / "tokenwire_echo.py").read_text()
    assert shown
    for part in "\n".join(shown).split("\n\n"):
        assert part.strip("\n") in source


@pytest.mark.parametrize("name", KINDS)
def test_it_is_listed_with_its_owner_and_version(environment: Path, name: str) -> None:
    listed = run(command(environment), "plugins")
    row = next(line for line in listed.splitlines() if f" {name} " in line)
    assert row.split()[:3] == [KINDS[name], name, name]
    assert f"tokenwire-{name} 1.0.0" in row


@pytest.mark.parametrize("name", KINDS)
def test_it_conforms_from_the_shell(environment: Path, name: str) -> None:
    assert "conforms" in run(command(environment), "conform", name)


@pytest.mark.parametrize("name", KINDS)
def test_its_own_test_passes(environment: Path, name: str) -> None:
    tests = str(EXAMPLES / name / "tests")
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


def test_the_engine_is_served(environment: Path, tmp_path: Path) -> None:
    with live_server(CONFIG, tmp_path, command=command(environment)) as server:
        ask = {"model": "echo", "prompt": "abc", "max_tokens": 5, "ignore_eos": True}
        answer = httpx.post(f"{server.url}/v1/completions", json=ask)
        assert answer.json()["choices"][0]["text"] == "abcab"
