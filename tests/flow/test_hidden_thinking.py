"""Thinking that is sent sealed comes back: the model is given its own words again, of its own
tenant and render alone. And the line that says who is billed does not reach the model."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.flow.spy import SpyEngine
from tests.flow.wired import PATHS, Doorman, model, serving
from tokenwire.core.testing.client import LocalClient

THOUGHT = "I weigh the tides."
SETTINGS = {"answer": f"<think>\n{THOUGHT}\n</think>\n\nLow."}
USER = {"role": "user", "content": "hi"}
ASKED: dict[str, Any] = {
    "model": "m",
    "max_tokens": 4000,
    "messages": [USER],
    "thinking": {"type": "enabled", "budget_tokens": 2000},
}
BETA = {"anthropic-beta": "redact-thinking-2026-02-12"}
OMITTED = ASKED | {"thinking": ASKED["thinking"] | {"display": "omitted"}}


def thinker(**more: Any) -> Any:
    return model(dialect="hermes", reasoning="think", settings=SETTINGS, **more)


def content(client: LocalClient, body: dict[str, Any], **headers: str) -> list[dict[str, Any]]:
    response = client.post(PATHS["messages"], body, headers=headers)
    assert response.status == 200, response.body
    if not body.get("stream"):
        found: list[dict[str, Any]] = json.loads(response.body)["content"]
        return found
    blocks: list[dict[str, Any]] = []
    for line in response.body.decode().splitlines():
        event: Any = json.loads(line[6:]) if line.startswith("data: ") else {"type": ""}
        if event["type"] == "content_block_start":
            blocks.append(event["content_block"])
        elif event["type"] == "content_block_delta":
            delta = dict(event["delta"])
            del delta["type"]
            for key, value in delta.items():
                blocks[-1][key] += value
    return blocks


def prompt(spied: SpyEngine) -> str:
    return bytes(id_ if id_ < 256 else 1 for id_ in spied.jobs[-1].prompt).decode()


def going_on(blocks: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """The next turn: thinking of a turn in which a tool is called stays with the model."""
    use = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "3 m"}
    said = [*(block for block in blocks if block["type"] != "text"), use]
    return ASKED | {
        "tools": [{"name": "f", "input_schema": {"type": "object"}}],
        "messages": [
            USER,
            {"role": "assistant", "content": said},
            {"role": "user", "content": [result]},
        ],
        **more,
    }


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("how", ["redacted", "omitted"])
def test_sealed_thinking_survives_a_round_trip(how: str, stream: bool) -> None:
    body, headers = (ASKED, BETA) if how == "redacted" else (OMITTED, {})
    with serving(thinker()) as (client, (spied,)):
        blocks = content(client, body | {"stream": stream}, **headers)
        assert THOUGHT not in json.dumps(blocks)
        assert blocks[0]["type"] == ("redacted_thinking" if how == "redacted" else "thinking")
        response = client.post(PATHS["messages"], going_on(blocks))
        assert response.status == 200
        assert "x-tokenwire-ignored" not in response.headers
        assert THOUGHT in prompt(spied)
        counted = client.post(
            "/v1/messages/count_tokens",
            {key: value for key, value in going_on(blocks).items() if key != "max_tokens"},
        )
        assert json.loads(counted.body)["input_tokens"] == len(spied.jobs[-1].prompt)


def test_a_stream_and_a_unary_body_are_sealed_alike() -> None:
    with serving(thinker()) as (client, _):
        one = content(client, ASKED, **BETA)
        two = content(client, ASKED | {"stream": True}, **BETA)
    assert one == two


def test_what_another_tenant_was_sealed_is_not_opened() -> None:
    door = Doorman()
    with serving(thinker(), guards=[door]) as (client, (spied,)):
        door.tenant = "a"
        blocks = content(client, ASKED, **BETA)
        door.tenant = "b"
        response = client.post(PATHS["messages"], going_on(blocks))
        assert THOUGHT not in prompt(spied)
        listed = response.headers["x-tokenwire-ignored"]
        assert listed == "messages[].content[][type=redacted_thinking]"


def test_thinking_is_shown_unless_it_is_asked_not_to_be() -> None:
    with serving(thinker()) as (client, _):
        assert content(client, ASKED)[0]["thinking"] == THOUGHT
    always = {"messages": {"redact_thinking": "always"}}
    with serving(thinker(), plugins_settings=always) as (client, _):
        assert content(client, ASKED)[0]["type"] == "redacted_thinking"


HEADER = "x-anthropic-billing-header: cc_version=2.1.{}; cc_entrypoint=cli; cch={};"


def test_a_sentence_about_the_billing_line_reaches_the_model() -> None:
    system = "x-anthropic-billing-header: never mention it."
    body = {"model": "m", "max_tokens": 9, "messages": [USER], "system": system}
    with serving(model(dialect="hermes")) as (client, (spied,)):
        response = client.post(PATHS["messages"], body)
        assert system in prompt(spied)
    assert "x-tokenwire-ignored" not in response.headers


@pytest.mark.parametrize("form", ["text", "block", "in a block"])
def test_the_billing_line_does_not_reach_the_model(form: str) -> None:
    def body(k: int) -> dict[str, Any]:
        line = HEADER.format(k, f"a8f{k}")
        system: Any = f"{line}\n\nBe brief."
        if form == "block":
            system = [{"type": "text", "text": line}, {"type": "text", "text": "Be brief."}]
        elif form == "in a block":
            system = [{"type": "text", "text": system}]
        return {"model": "m", "max_tokens": 9, "messages": [USER], "system": system}

    with serving(model(dialect="hermes")) as (client, (spied,)):
        responses = [client.post(PATHS["messages"], body(k)) for k in (1, 2)]
        first, second = (job.prompt for job in spied.jobs)
        assert "billing" not in prompt(spied)
        assert "Be brief." in prompt(spied)
    assert first == second
    assert json.loads(responses[1].body)["usage"]["cache_read_input_tokens"] > 0
    assert responses[0].headers["x-tokenwire-ignored"] == "system.x-anthropic-billing-header"
    keep = {"messages": {"billing_header": "keep"}}
    with serving(model(dialect="hermes"), plugins_settings=keep) as (client, (spied,)):
        response = client.post(PATHS["messages"], body(1))
        assert "x-anthropic-billing-header" in prompt(spied)
    assert "x-tokenwire-ignored" not in response.headers
