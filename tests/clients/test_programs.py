"""Clients of PyPI and npm against a live server: each program does the same things through one
client, and what it saw must be the same as through every other."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.clients.installed import NODE, PROGRAMS, node, python, run
from tests.clients.live import LiveServer
from tests.clients.stage import stage

pytestmark = pytest.mark.clients

TEXT = "The tide is high 🌊."
SCRIPTS: dict[str, Any] = {
    "say": {"pieces": ["The tide ", "is ", "high 🌊."], "finish": "eos"},
    "done": {"pieces": ["The tide ", "is ", "3.1 m."], "finish": "eos"},
    "long": {"pieces": ["one ", {"sleep_s": 60}, "two"], "finish": "eos"},
}
SEEN = {
    "said": [TEXT, TEXT],  # unary, and put together from a stream by the client
    "output_tokens": [3, 3],
    "calls": [["Brest", "Cork"], ["Brest", "Cork"]],
    "answer": "The tide is 3.1 m.",  # after the results of the calls
    "thought": "two and two",
    "structured": {"port": "", "metres": 0},
    "cancelled": "one ",
}
# What each client makes of a bad request, an unknown model, an overloaded one (asked again), and of
# an engine that is lost in the middle of a stream.
FAILURES = ("refused", "missing", "overloaded", "lost")
OPENAI = ("BadRequestError 400", "NotFoundError 404", "InternalServerError 503", "APIError")
ANTHROPIC = ("BadRequestError 400", "NotFoundError 404", "OverloadedError 529", "APIError")
LANGCHAIN = (r"\w+Error 400", r"\w+Error 404", r"\w+Error (503|529)", r"APIError|ValueError|.* 200")
PYDANTIC = (r"\w+Error 400", r"\w+Error 404", r"\w+Error (503|529)", r"Model\w+Error")
LITELLM = ("BadRequestError 400", "NotFoundError 404", r"\w+Error 50[03]", r"\w+Error 500")
VERCEL = ("AI_APICallError 400", "AI_APICallError 404", "AI_RetryError", r"AI_\w+Error.*")
FORCED = {"structured_by_a_tool": SEEN["structured"]}
LOOPED = {"streamed_answer": SEEN["answer"]}
# Why: these two read no `reasoning_content`, which OpenAI's own Chat Completions do not have.
NO_THOUGHT = {"thought": ""}

Expected = dict[str, tuple[tuple[str, ...], dict[str, object]]]
"""A protocol, or a client's way to it: what its failures match, and what else differs."""
LANGCHAIN_SEES: Expected = {
    "chat": (LANGCHAIN, NO_THOUGHT),
    "responses": (LANGCHAIN, {}),
    "messages": (LANGCHAIN, {}),
}
PYDANTIC_SEES: Expected = {kind: (PYDANTIC, FORCED) for kind in ("chat", "responses", "messages")}
LITELLM_SEES: Expected = {"chat": (LITELLM, {}), "messages": (LITELLM, {})}
VERCEL_SEES: Expected = {
    "chat": (VERCEL, {**LOOPED, **NO_THOUGHT}),
    "responses": (VERCEL, LOOPED),
    "compatible": (VERCEL, LOOPED),
    "messages": (VERCEL, LOOPED),
}
OPENAI_SEES: Expected = {"chat": (OPENAI, {}), "responses": ((*OPENAI[:3], "response.failed"), {})}
ANTHROPIC_SEES: Expected = {"messages": (ANTHROPIC, {})}


@pytest.fixture
def playing(scripted: LiveServer) -> LiveServer:
    for name, script in SCRIPTS.items():
        scripted.script(name, script)
    return scripted


def cancelled(server: LiveServer) -> int:
    """How many requests ended because their client went away."""
    lines = httpx.get(f"{server.url}/metrics").text.splitlines()
    found = [line for line in lines if 'outcome="cancelled"' in line]
    return sum(int(float(line.rsplit(" ", 1)[1])) for line in found)


def until_cancelled(server: LiveServer, wanted: int) -> bool:
    deadline = time.monotonic() + 30
    while cancelled(server) < wanted and time.monotonic() < deadline:
        time.sleep(0.05)
    return cancelled(server) >= wanted


def play(server: LiveServer, command: list[str], folder: Path, expected: Expected) -> Any:
    """Run a program, compare what it saw by each protocol, and return the rest that it printed."""
    before = cancelled(server)
    with stage(server.url) as staged:
        environ = {"TOKENWIRE_URL": server.url, "TOKENWIRE_STAGE": staged.url}
        status, out, errors = run(command, environ, folder)
    assert status == 0, errors[-3000:]
    printed = json.loads(out.splitlines()[-1])
    for kind, (failures, differs) in expected.items():
        seen = printed.pop(kind)
        for name, pattern in zip(FAILURES, failures, strict=True):
            failure = seen.pop(name)
            assert re.fullmatch(pattern, failure), f"{kind}: {name}: {failure}"
        assert seen == {**SEEN, **differs}, kind
    tried = [exchange for exchange in staged.exchanges if exchange.body.get("model") == "busy"]
    assert {exchange.status for exchange in tried} <= {503, 529}
    assert len(tried) >= 2 * len(expected)
    assert until_cancelled(server, before + len(expected))
    return printed


# Why one of the two servers for these: each takes seconds to be imported.
@pytest.mark.parametrize("server", ["granian"], indirect=True)
class TestPython:
    def test_langchain(self, playing: LiveServer, tmp_path: Path) -> None:
        command = [python(), str(PROGRAMS / "langchain_client.py")]
        assert play(playing, command, tmp_path, LANGCHAIN_SEES) == {}

    def test_pydantic_ai(self, playing: LiveServer, tmp_path: Path) -> None:
        command = [python(), str(PROGRAMS / "pydantic_ai_client.py")]
        assert play(playing, command, tmp_path, PYDANTIC_SEES) == {}

    def test_litellm(self, playing: LiveServer, tmp_path: Path) -> None:
        command = [python(), str(PROGRAMS / "litellm_client.py")]
        rest = play(playing, command, tmp_path, LITELLM_SEES)
        assert rest == {"responses": {"said": [TEXT, TEXT], "last": "response.completed"}}


def test_openai_of_npm(playing: LiveServer, tmp_path: Path) -> None:
    command = [node(), str(NODE / "openai_client.mjs")]
    rest = play(playing, command, tmp_path, OPENAI_SEES)
    assert rest == {"completions": {"said": [TEXT, TEXT]}, "models": True}


def test_anthropic_of_npm(playing: LiveServer, tmp_path: Path) -> None:
    command = [node(), str(NODE / "anthropic_client.mjs")]
    rest = play(playing, command, tmp_path, ANTHROPIC_SEES)
    assert rest == {"counted": True, "models": True}


def test_the_ai_sdk(playing: LiveServer, tmp_path: Path) -> None:
    command = [node(), str(NODE / "ai_sdk_client.mjs")]
    assert play(playing, command, tmp_path, VERCEL_SEES) == {}
