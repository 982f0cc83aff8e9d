"""Command-line agents of npm against a live server: the model asks for a tool, the agent runs it
in a folder of its own, sends the result back, and prints the last answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec import Struct

from tests.clients.installed import agent, run
from tests.clients.live import LiveServer
from tests.clients.stage import Stage, has_tools, stage

pytestmark = pytest.mark.clients

CLAUDE_CODE = "@anthropic-ai/claude-code/cli-wrapper.cjs"
CODEX = "@openai/codex/bin/codex.js"
ASK = "What is the tide?"
ANSWER = "The tide is 3.1 m."
THOUGHT = ["<think>", "two", " and two", "</think>", "\n\n", "I will look. "]
RUN = 'const ran = await tools.exec_command({cmd: "cat tide.txt"}); text(ran.output);'
PATCH = "*** Begin Patch\n*** Add File: made.txt\n+hello\n*** End Patch\n"


def call(name: str, **arguments: str) -> str:
    """A tool call as the model of these tests writes it."""
    return "<tool_call>\n" + json.dumps({"name": name, "arguments": arguments}) + "\n</tool_call>"


TURNS = {
    "bash": [*THOUGHT, call("Bash", command="cat tide.txt", description="Read the tide")],
    "shell": [*THOUGHT, call("exec_command", cmd="cat tide.txt")],
    "patch": [*THOUGHT, call("apply_patch", input=PATCH)],
    "program": ["I will look. ", call("functions__exec", input=RUN)],
    "close": ["I will ask. ", call("multi_agent_v1__close_agent", target="nobody")],
    "search": ["I will search. ", call("tool_search", query="list spawned agents")],
    "done": ["The tide ", "is ", "3.1 m."],
}


class Scene(Struct, frozen=True):
    """A server that plays one tool turn, and an agent's home and place of work."""

    server: LiveServer
    stage: Stage
    home: Path
    work: Path

    def sent(self) -> list[dict[str, Any]]:
        """The bodies of the agent's own turns, in order."""
        return [dict(each.body) for each in self.stage.exchanges if has_tools(each.body)]

    def ignored(self) -> str:
        return ", ".join(each.ignored for each in self.stage.exchanges)

    def spliced(self) -> int:
        """How many turns so far went on from the very ids that the engine holds."""
        lines = httpx.get(f"{self.server.url}/metrics").text.splitlines()
        found = [line for line in lines if "history_total" in line and 'outcome="spliced"' in line]
        return sum(int(float(line.rsplit(" ", 1)[1])) for line in found)

    def claude(self, script: str, *options: str, model: str = "agent") -> tuple[int, Any]:
        """Claude Code in print mode: its exit status and its one JSON object."""
        environ = {
            "ANTHROPIC_AUTH_TOKEN": "none",
            "ANTHROPIC_BASE_URL": self.stage.url,
            "ANTHROPIC_CUSTOM_HEADERS": f"x-mock-script: {script}",
            "ANTHROPIC_DEFAULT_HAIKU_MODEL": model,
            "ANTHROPIC_MODEL": model,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_MAX_RETRIES": "1",
            "CLAUDE_CONFIG_DIR": str(self.home),
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
        }
        command = [*agent(CLAUDE_CODE), "-p", ASK, "--output-format", "json", *options]
        status, out, errors = run(command, environ, self.work)
        assert out, errors[-3000:]
        return status, json.loads(out)

    def codex(self, script: str, *options: str, model: str = "agent") -> tuple[int, list[Any]]:
        """Codex in exec mode: its exit status and its events."""
        (self.home / "config.toml").write_text(f"""
model = "{model}"
model_provider = "tokenwire"
check_for_update_on_startup = false
[model_providers.tokenwire]
name = "Tokenwire"
base_url = "{self.stage.url}/v1"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 1
http_headers = {{ "x-mock-script" = "{script}" }}
[analytics]
enabled = false
""")
        command = [*agent(CODEX), "exec", "--skip-git-repo-check", "--json", *options, ASK]
        status, out, errors = run(command, {"CODEX_HOME": str(self.home)}, self.work)
        assert out, errors[-3000:]
        return status, [json.loads(line) for line in out.splitlines()]


@pytest.fixture
def scene(server: LiveServer, tmp_path: Path) -> Iterator[Scene]:
    for name, pieces in TURNS.items():
        server.script(name, {"pieces": pieces, "finish": "eos"})
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    (work / "tide.txt").write_text("3.1 m\n")
    with stage(server.url) as staged:
        yield Scene(server, staged, home, work)


def items(events: list[Any], kind: str) -> list[Any]:
    """What Codex says to have completed, of one kind."""
    completed = [event["item"] for event in events if event["type"] == "item.completed"]
    return [item for item in completed if item["type"] == kind]


def test_claude_code_runs_a_tool(scene: Scene) -> None:
    before = scene.spliced()
    status, result = scene.claude("bash", "--allowedTools", "Bash(cat tide.txt)")
    assert (status, result["is_error"], result["result"]) == (0, False, ANSWER)
    assert result["num_turns"] == 2
    assert result["usage"]["cache_read_input_tokens"] > 0
    called, answered = scene.sent()[-1]["messages"][-2:]
    thinking, text, use = called["content"]
    assert (thinking["type"], text["text"]) == ("thinking", "I will look. ")
    result_block = answered["content"][0]
    assert result_block["tool_use_id"] == use["id"]
    assert "3.1 m" in json.dumps(result_block["content"])
    assert "signature" not in scene.ignored()
    assert scene.spliced() == before + 1


def test_claude_code_says_what_failed(scene: Scene) -> None:
    status, result = scene.claude("bash", model="nope")
    assert (status, result["is_error"], result["api_error_status"]) == (1, True, 404)
    status, result = scene.claude("bash", model="mock")  # whose context its prompt does not fit
    assert (status, result["terminal_reason"]) == (1, "prompt_too_long")


def test_claude_code_tries_an_overloaded_model_again(scene: Scene) -> None:
    status, result = scene.claude("bash", model="busy")
    assert (status, result["api_error_status"]) == (1, 529)
    assert [each.status for each in scene.stage.exchanges] == [529, 529]


def test_codex_runs_a_command(scene: Scene) -> None:
    before = scene.spliced()
    status, events = scene.codex("shell", "--sandbox", "danger-full-access")
    assert (status, events[-1]["type"]) == (0, "turn.completed")
    assert [item["text"] for item in items(events, "reasoning")] == ["two and two"]
    texts = [item["text"] for item in items(events, "agent_message")]
    assert texts == ["I will look. ", ANSWER]
    (ran,) = items(events, "command_execution")
    assert (ran["aggregated_output"], ran["exit_code"]) == ("3.1 m\n", 0)
    called, answered = scene.sent()[-1]["input"][-2:]
    assert answered["call_id"] == called["call_id"]
    assert "3.1 m" in answered["output"]
    assert "encrypted_content" not in scene.ignored()
    assert events[-1]["usage"]["reasoning_output_tokens"] > 0
    assert scene.spliced() == before + 1


def test_codex_applies_a_patch_through_a_free_form_tool(scene: Scene) -> None:
    status, events = scene.codex("patch", "--sandbox", "danger-full-access", model="gpt-5.5")
    assert (status, events[-1]["type"]) == (0, "turn.completed")
    assert (scene.work / "made.txt").read_text() == "hello\n"
    called, answered = scene.sent()[-1]["input"][-2:]
    assert (called["type"], called["input"]) == ("custom_tool_call", PATCH)
    assert answered["type"] == "custom_tool_call_output"
    assert items(events, "agent_message")[-1]["text"] == ANSWER


def test_codex_runs_a_program_through_a_tool_of_a_namespace(scene: Scene) -> None:
    status, events = scene.codex("program", "--sandbox", "danger-full-access", model="gpt-6-sol")
    assert (status, events[-1]["type"]) == (0, "turn.completed")
    (ran,) = items(events, "command_execution")
    assert (ran["aggregated_output"], ran["exit_code"]) == ("3.1 m\n", 0)
    called, answered = scene.sent()[-1]["input"][-2:]
    assert (called["namespace"], called["name"], called["input"]) == ("functions", "exec", RUN)
    assert "3.1 m" in json.dumps(answered["output"])


def test_codex_finds_a_function_of_a_namespace(scene: Scene) -> None:
    status, events = scene.codex("close")
    assert (status, events[-1]["type"]) == (0, "turn.completed")
    called, answered = scene.sent()[-1]["input"][-2:]
    assert (called["namespace"], called["name"]) == ("multi_agent_v1", "close_agent")
    assert "invalid agent id" in answered["output"]  # and not that there is no such tool


def test_codex_finds_deferred_tools(scene: Scene) -> None:
    status, events = scene.codex("search", model="gpt-5.5")
    assert (status, events[-1]["type"]) == (0, "turn.completed")
    called, answered = scene.sent()[-1]["input"][-2:]
    assert (called["type"], called["execution"]) == ("tool_search_call", "client")
    assert called["arguments"]["query"] == "list spawned agents"
    assert (answered["type"], answered["call_id"]) == ("tool_search_output", called["call_id"])
    assert answered["tools"]
    assert "tool_search" not in scene.ignored()
    assert items(events, "agent_message")[-1]["text"] == ANSWER


def test_codex_says_what_failed(scene: Scene) -> None:
    status, events = scene.codex("shell", model="busy")
    assert (status, events[-1]["type"]) == (1, "turn.failed")
    assert "overloaded" in events[-1]["error"]["message"]
    assert {each.status for each in scene.stage.exchanges} == {503}
    assert len(scene.stage.exchanges) >= 2
