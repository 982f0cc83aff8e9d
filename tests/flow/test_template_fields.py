"""What a request says to the template alone, and thinking that a client does not want to see."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.flow.spy import SpyEngine
from tests.flow.wired import PATHS, model, serving
from tokenwire.core.config import PluginUse

USER = {"role": "user", "content": "hi"}
SOURCE = """{% for m in messages %}{{ m.role }}{{ m.name or '' }}:{{ m.content }}
{%- if m.reasoning_content %}[{{ m.reasoning_content }}]{% endif %}
{% endfor %}{{ reasoning_effort or '' }}{{ odd or '' }}
{%- if documents %}{{ documents[0].text }}{% endif %}assistant:"""

FIELDS: dict[str, tuple[dict[str, Any], str]] = {
    "reasoning_effort": ({"reasoning_effort": "high"}, "high"),
    "chat_template_kwargs": ({"chat_template_kwargs": {"odd": "kw"}}, "kw"),
    "chat_template_args": ({"chat_template_args": {"odd": "arg"}}, "arg"),
    "documents": ({"documents": [{"title": "t", "text": "tides"}]}, "tides"),
    "messages[].name": ({"messages": [USER | {"name": "Ada"}]}, "userAda:"),
    "messages[].reasoning_content": (
        {"messages": [USER, {"role": "assistant", "content": "a", "reasoning_content": "r"}, USER]},
        "[r]",
    ),
    "messages[].reasoning": (
        {"messages": [USER, {"role": "assistant", "content": "a", "reasoning": "r"}, USER]},
        "[r]",
    ),
}


def prompt(spied: SpyEngine) -> str:
    return bytes(id_ if id_ < 256 else 1 for id_ in spied.jobs[-1].prompt).decode()


@pytest.mark.parametrize("name", FIELDS)
def test_what_is_for_the_template_gets_there(tmp_path: Path, name: str) -> None:
    path = tmp_path / "template.jinja"
    path.write_text(SOURCE)
    given, text = FIELDS[name]
    asked = {"model": "m", "messages": [USER], **given}
    own = PluginUse("jinja", {"path": str(path)})
    with serving(model(dialect="hermes", chat_template=own)) as (client, (spied,)):
        response = client.post(PATHS["chat_completions"], asked)
        assert response.status == 200, response.body
        assert text in prompt(spied)
    assert "x-tokenwire-ignored" not in response.headers


def test_what_messages_says_to_the_template(tmp_path: Path) -> None:
    path = tmp_path / "template.jinja"
    path.write_text(SOURCE)
    asked = {
        "model": "m",
        "max_tokens": 9,
        "output_config": {"effort": "high"},
        "messages": [USER],
    }
    own = PluginUse("jinja", {"path": str(path)})
    with serving(model(dialect="hermes", chat_template=own)) as (client, (spied,)):
        response = client.post(PATHS["messages"], asked)
        assert response.status == 200, response.body
        assert "high" in prompt(spied)


@pytest.mark.parametrize("stream", [False, True])
def test_thinking_that_is_not_to_be_sent(stream: bool) -> None:
    settings = {"answer": "<think>\nso\n</think>\n\nLow."}
    asked = {"model": "m", "messages": [USER], "stream": stream}
    if stream:
        asked["stream_options"] = {"include_usage": True}
    with serving(model(dialect="hermes", reasoning="think", settings=settings)) as (client, _):
        shown, hidden = (
            client.post(PATHS["chat_completions"], asked | {"include_reasoning": value}).body
            for value in (True, False)
        )
    assert b"reasoning_content" in shown
    assert b"reasoning_content" not in hidden
    assert b"Low" in hidden or stream
    assert usage(shown)["completion_tokens"] == usage(hidden)["completion_tokens"]
    assert usage(hidden)["completion_tokens_details"]["reasoning_tokens"] > 0


def usage(body: bytes) -> Any:
    if body.startswith(b"{"):
        return json.loads(body)["usage"]
    lines = [line[6:] for line in body.decode().splitlines() if line.startswith("data: {")]
    return json.loads(lines[-1])["usage"]


def test_the_usage_so_far_is_in_every_chunk() -> None:
    options = {"include_usage": True, "continuous_usage_stats": True}
    asked = {"model": "m", "messages": [USER], "stream": True, "stream_options": options}
    with serving(model(dialect="hermes", settings={"answer": "abcdef"})) as (client, _):
        body = client.post(PATHS["chat_completions"], asked).body
    lines = [line[6:] for line in body.decode().splitlines() if line.startswith("data: {")]
    used = [json.loads(line)["usage"] for line in lines]
    assert all(each["prompt_tokens"] == used[0]["prompt_tokens"] > 0 for each in used)
    counts = [each["completion_tokens"] for each in used]
    assert counts == sorted(counts)
    assert counts[-1] >= 6
    assert len(set(counts)) > 3
