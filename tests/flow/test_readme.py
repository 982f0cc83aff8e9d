"""What README.md tells people to type works: its curl commands, its clients, its command lines."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.clients.live import COMMAND, LiveServer, live_server

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
SERVED = "http://127.0.0.1:8080"
SCRIPTED = yaml.safe_load((ROOT / "deploy" / "mock-scripts.yaml").read_text())["models"]


def blocks() -> list[tuple[str, str]]:
    """(heading, text) of each indented block."""
    found = []
    for section in re.split(r"^## ", README, flags=re.MULTILINE)[1:]:
        heading, _, text = section.partition("\n")
        for block in re.findall(r"(?:^    .*\n)+", text, re.MULTILINE):
            found.append((heading, re.sub(r"^    ", "", block, flags=re.MULTILINE).strip()))
    return found


def of(start: str) -> list[tuple[str, str]]:
    return [(heading, block) for heading, block in blocks() if block.startswith(start)]


CURLS = of("curl")
SNIPPETS = of("from")
LINES = [line for _, block in of(".venv/bin/tokenwire") for line in block.splitlines()]


def test_everything_in_it_is_tried() -> None:
    tried = [block for _, block in (*CURLS, *SNIPPETS, *of(".venv/bin/tokenwire"))]
    rest = [block for _, block in blocks() if block not in tried]
    assert rest == ["make serve", "make test", "make serve-real"]
    assert (len(CURLS), len(SNIPPETS), len(LINES)) == (12, 2, 6)
    makefile = (ROOT / "Makefile").read_text()
    for block in rest:
        assert f"\n{block.removeprefix('make ')}: " in makefile


@pytest.fixture(scope="module")
def server(smollm2: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """What `make serve` serves, and deploy/mock-scripts.yaml beside it."""
    models = [
        {"name": "mock", "engine": "mock", "tokenizer": "bytes", "dialect": "hermes"},
        {"name": "smollm2", "engine": "mock", "tokenizer": str(smollm2 / "tokenizer.json")},
        *SCRIPTED,
    ]
    text = yaml.safe_dump({"models": models})
    with live_server(text, tmp_path_factory.mktemp("readme")) as server:
        yield server


@pytest.mark.parametrize("block", [pytest.param(block, id=heading) for heading, block in CURLS])
def test_its_curl_commands_are_answered(server: LiveServer, block: str) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    assert SERVED in block
    named = re.search(r'"model": "(\w+)"', block)
    if "x-mock-script" in block:
        server.script("hello", {"pieces": ["Hel", "lo ", "there"], "finish": "eos"})
    command = block.replace(SERVED, server.url).replace("curl", "curl -w '\\n%{http_code}'", 1)
    done = subprocess.run(
        ["sh", "-c", command], capture_output=True, text=True, timeout=60, check=False
    )
    body, _, status = done.stdout.rpartition("\n")
    assert status == "200", done.stdout + done.stderr
    if "-X PUT" in block:
        return
    if '"stream": true' in block:
        first = re.search(r"^data: (\{.*)$", body, re.MULTILINE)
        assert first is not None
        body = first.group(1)
    answer: Any = json.loads(body)
    if "/tokenize" in block:
        assert answer["count"] == len(answer["tokens"])
    elif "/v1/capabilities" in block:
        assert "responses" in body
    else:
        assert named is not None
        assert (answer.get("message") or answer)["model"] == named.group(1)
    if "tool_choice" in block:
        assert answer["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "weather"
    if named is not None and named.group(1) == "script":
        assert answer["choices"][0]["message"]["content"] == "Hello there"


@pytest.mark.parametrize("block", [block for _, block in SNIPPETS])
def test_its_clients_work(server: LiveServer, block: str) -> None:
    assert SERVED in block
    names: dict[str, Any] = {}
    exec(block.replace(SERVED, server.url), names)
    with names["client"] as client:
        assert "smollm2" in {model.id for model in client.models.list()}


@pytest.mark.parametrize(
    "line",
    [pytest.param(line, marks=[pytest.mark.torch] * ("kernels" in line)) for line in LINES],
)
def test_its_command_lines_work(
    server: LiveServer, line: str, tmp_path: Path, smollm2: Path
) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "smollm2").symlink_to(smollm2)
    command = line.partition("#")[0].replace(".venv/bin/tokenwire", str(COMMAND))
    for folder in ("examples", "deploy"):
        command = command.replace(f" {folder}/", f" {ROOT / folder}/")
    command = command.replace(" call ", f" call --url {server.url} ")
    done = subprocess.run(
        ["sh", "-c", command],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "NO_COLOR": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip()


def test_the_commands_it_mentions_in_passing_exist() -> None:
    inline = re.findall(r"`(?:\.venv/bin/)?tokenwire (\w+)", README)
    assert inline
    for name in inline:
        done = subprocess.run([str(COMMAND), name, "--help"], capture_output=True, check=False)
        assert done.returncode == 0
    for path in re.findall(r"deploy/[\w.-]+", README):
        assert (ROOT / path).is_file()
