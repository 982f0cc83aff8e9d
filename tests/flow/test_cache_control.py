"""cache_control, from a client's block to the engine's pins, and back to the usage that is counted
from what the engine really found."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.flow.wired import PATHS, model, serving
from tokenwire.core.testing.client import LocalClient, Response

MARK = {"type": "ephemeral"}
LONG = "It is a long system prompt, and it is always the same. " * 3
BLOCK = 16


def block(text: str, ttl: str | None = None, *, marked: bool = True) -> dict[str, Any]:
    control = MARK if ttl is None else MARK | {"ttl": ttl}
    return {"type": "text", "text": text} | ({"cache_control": control} if marked else {})


def body(*said: Any, **more: Any) -> dict[str, Any]:
    content = list(said) or "hi"
    messages = [{"role": "user", "content": content}]
    return {"model": "m", "max_tokens": 9, "messages": messages} | more


def ask(client: LocalClient, given: dict[str, Any]) -> tuple[dict[str, Any], Response]:
    response = client.post(PATHS["messages"], given)
    assert response.status == 200, response.body
    return json.loads(response.body)["usage"], response


def counted(client: LocalClient, given: dict[str, Any]) -> int:
    asked = {key: value for key, value in given.items() if key != "max_tokens"}
    response = client.post("/v1/messages/count_tokens", asked)
    return int(json.loads(response.body)["input_tokens"])


def prompt_of(spied: Any) -> str:
    return bytes(id_ if id_ < 256 else 1 for id_ in spied.jobs[-1].prompt).decode(
        "utf-8", "replace"
    )


@pytest.mark.parametrize("dialect", ["hermes", "plain"])
def test_a_marker_is_the_last_whole_block_before_its_parts_end(dialect: str) -> None:
    with serving(model(dialect=dialect)) as (client, (spied,)):
        given = body(system=[block(LONG, "1h"), block("tail", marked=False)])
        usage, response = ask(client, given)
        (pin,) = spied.jobs[-1].kv.pins
        end = prompt_of(spied).index(LONG.strip()) + len(LONG.strip())
    assert "x-tokenwire-ignored" not in response.headers
    assert end - BLOCK < pin.tokens <= end
    assert pin.tokens % BLOCK == 0
    assert pin.ttl_s == 3600
    assert usage["cache_creation_input_tokens"] == pin.tokens
    assert usage["cache_creation"] == {
        "ephemeral_5m_input_tokens": 0,
        "ephemeral_1h_input_tokens": pin.tokens,
    }


def test_what_was_written_is_read_the_next_time_and_the_parts_add_up_to_the_prompt() -> None:
    with serving(model(dialect="hermes")) as (client, (spied,)):
        given = body(block(LONG), block("one"), system=[block(LONG)])
        first, _ = ask(client, given)
        again, _ = ask(client, given)
        longer = body(block(LONG), block("one"), block("two " * 20), system=[block(LONG)])
        more, _ = ask(client, longer)
        whole = counted(client, given), counted(client, longer)
        pins = spied.jobs[-1].kv.pins
    assert first["cache_read_input_tokens"] == 0
    assert first["cache_creation_input_tokens"] > 2 * len(LONG) - BLOCK
    assert again["cache_creation_input_tokens"] == 0
    assert again["cache_read_input_tokens"] >= first["cache_creation_input_tokens"]
    assert more["cache_read_input_tokens"] + more["cache_creation_input_tokens"] == pins[-1].tokens
    for usage, prompt in ((first, whole[0]), (again, whole[0]), (more, whole[1])):
        parts = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        assert sum(usage[part] for part in parts) == prompt


def test_without_a_marker_nothing_is_said_to_be_written() -> None:
    with serving(model(dialect="hermes")) as (client, (spied,)):
        usage, _ = ask(client, body(block(LONG, marked=False)))
        again, _ = ask(client, body(block(LONG, marked=False)))
        assert spied.jobs[-1].kv.pins == ()
    assert usage["cache_creation_input_tokens"] == again["cache_creation_input_tokens"] == 0
    assert again["cache_read_input_tokens"] > 0


def test_markers_of_both_lifetimes_are_split() -> None:
    with serving(model(dialect="hermes")) as (client, (spied,)):
        usage, _ = ask(client, body(block(LONG, "5m"), system=[block(LONG, "1h")]))
        first, second = spied.jobs[-1].kv.pins
    assert usage["cache_creation"] == {
        "ephemeral_5m_input_tokens": second.tokens - first.tokens,
        "ephemeral_1h_input_tokens": first.tokens,
    }


def test_tools_calls_and_results_can_be_marked() -> None:
    tool = {"name": "f", "description": LONG, "input_schema": {"type": "object"}}
    use = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": LONG}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": LONG}
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [use | {"cache_control": MARK}]},
        {"role": "user", "content": [result | {"cache_control": MARK}]},
    ]
    given = body(tools=[tool | {"cache_control": MARK}]) | {"messages": messages}
    with serving(model(dialect="hermes")) as (client, (spied,)):
        ask(client, given)
        text, pins = prompt_of(spied), spied.jobs[-1].kv.pins
    ends = [text.index(LONG.strip(), at) + len(LONG.strip()) for at in (0, *starts(text)[:2])]
    assert len(pins) == 3
    for pin, end in zip(pins, ends, strict=True):
        assert 0 <= pin.tokens - end < 2 * BLOCK or end - BLOCK < pin.tokens <= end


def starts(text: str) -> list[int]:
    """Behind each occurrence."""
    found, at = [], 0
    while (at := text.find(LONG.strip(), at)) >= 0:
        at += len(LONG.strip())
        found.append(at)
    return found


def test_a_stream_says_the_same_at_its_start_and_end() -> None:
    with serving(model(dialect="hermes")) as (client, (spied,)):
        response = client.post(PATHS["messages"], body(block(LONG)) | {"stream": True})
        (pin,) = spied.jobs[-1].kv.pins
    lines = [line[6:] for line in response.body.decode().splitlines() if line.startswith("data: ")]
    events = [json.loads(line) for line in lines]
    start = next(event for event in events if event["type"] == "message_start")["message"]
    end = next(event for event in events if event["type"] == "message_delta")
    assert start["usage"]["cache_creation_input_tokens"] == pin.tokens
    assert end["usage"]["cache_creation_input_tokens"] == pin.tokens


def test_an_engine_without_a_cache_is_said_to_have_none() -> None:
    with serving(model(dialect="hermes", settings={"kv_blocks": 0})) as (client, (spied,)):
        usage, response = ask(client, body(block(LONG)))
        assert spied.jobs[-1].kv.pins == ()
    assert usage["cache_creation_input_tokens"] == 0
    assert response.headers["x-tokenwire-ignored"] == "cache_control"
