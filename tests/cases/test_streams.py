"""What a stream looks like as it comes: what goes out with which step, and how it fails."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.cases.cutting import cuttings
from tests.cases.outputs import function
from tests.cases.stage import CHAT, MESSAGES, Stage
from tokenwire.core.testing.client import Recording
from tokenwire.core.wire import HttpRequest, SseReader

HI = [{"role": "user", "content": "Hi"}]
CALLS = '<tool_call>\n{"name": "%s", "arguments": {"item": "%s"}}\n</tool_call>'


def chunks(stage: Stage, script: Any, path: str = CHAT, **more: Any) -> list[Any]:
    body = {"model": "plain", "messages": HI, "stream": True, **more}
    if path == MESSAGES:
        body["max_tokens"] = 100
    events = stage.play(path, body, script).response.events()
    return [json.loads(event.data) for event in events if event.data not in ("", "[DONE]")]


def deltas(stage: Stage, script: Any, **more: Any) -> list[Any]:
    return [chunk["choices"][0]["delta"] for chunk in chunks(stage, script, **more)]


def texts(stage: Stage, script: Any, **more: Any) -> list[str]:
    return [delta["content"] for delta in deltas(stage, script, **more) if delta.get("content")]


def test_only_what_may_begin_a_stop_string_is_held(stage: Stage) -> None:
    script = {"pieces": ["Good", " day H", "A", " ha", "H"]}
    assert texts(stage, script, stop=["HALT"]) == ["Good", " day ", "HA ha", "H"]


def test_a_whole_character_is_sent_though_the_next_has_begun(stage: Stage) -> None:
    script = {"pieces": [{"hex": "c3a9e2"}, {"hex": "82ac"}]}
    assert texts(stage, script) == ["é", "€"]


def test_no_chunk_is_empty_but_the_last(stage: Stage) -> None:
    got = deltas(stage, {"pieces": ["", "o", "", "k", ""]})
    assert [delta for delta in got if delta == {}] == [{}]
    assert got[-1] == {}


@pytest.mark.parametrize(
    ("options", "count"), [(None, 0), ({"include_usage": False}, 0), ({"include_usage": True}, 1)]
)
def test_usage_is_sent_when_it_is_asked_for(stage: Stage, options: Any, count: int) -> None:
    got = chunks(stage, {"pieces": ["x"]}, stream_options=options)
    assert [chunk["choices"] for chunk in got].count([]) == count
    assert bool(got[-1].get("usage")) == bool(count)


def test_usage_is_the_sum_over_choices(stage: Stage) -> None:
    script = {"choices": [{"pieces": ["a", "b"]}, {"pieces": ["c"]}, {"pieces": []}]}
    got = chunks(stage, script, n=3, stream_options={"include_usage": True})
    assert got[-1]["usage"]["completion_tokens"] == 3
    alone = chunks(stage, {"pieces": ["c"]}, stream_options={"include_usage": True})
    assert got[-1]["usage"]["prompt_tokens"] == alone[-1]["usage"]["prompt_tokens"]


def test_a_call_names_itself_once_and_first(stage: Stage) -> None:
    tools = [function("check_stock")]
    for name, script in cuttings({"pieces": [CALLS % ("check_stock", "rope")]}):
        got = deltas(stage, script, model="hermes", tools=tools)
        parts = [call for delta in got for call in delta.get("tool_calls", ())]
        assert set(parts[0]) == {"index", "id", "type", "function"}, name
        assert parts[0]["function"]["name"] == "check_stock", name
        assert all(set(part) == {"index", "function"} for part in parts[1:]), name
        assert all(set(part["function"]) == {"arguments"} for part in parts[1:]), name


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
@pytest.mark.parametrize("format", ["plain", "hermes", "think"])
@pytest.mark.parametrize(
    "pieces",
    [["par", "tly"], ["<think>par"], ['<tool_call>\n{"name": "check_stock", "arguments": {"i'], []],
)
def test_a_failure_is_no_end(stage: Stage, path: str, format: str, pieces: list[str]) -> None:
    script = {"pieces": [*pieces, {"engine_error": "lost"}], "finish": "abort"}
    for name, cut in cuttings(script):
        body = {"model": format, "messages": HI, "max_tokens": 500}
        if format == "hermes" and path == CHAT:
            body["tools"] = [function("check_stock")]
        streamed = stage.play(path, {**body, "stream": True}, cut)
        # message.py has seen that it is the last event, and that no choice finished.
        assert streamed.message.error, name
        assert b"Traceback" not in streamed.response.body
        whole = stage.play(path, body, cut)
        assert whole.status == 503, name
        assert whole.message.error["message"], name


def test_log_probabilities_belong_to_the_text_that_was_sent(stage: Stage) -> None:
    script = {"pieces": ["<think>", "t", "</think>", "one", " S", "o", " ST", "OP", " x"]}
    body = {"model": "think", "messages": HI, "logprobs": True, "stop": [" STOP"]}
    for stream in (False, True):
        message = stage.play(CHAT, {**body, "stream": stream}, script).message
        data = b"".join(bytes(entry["bytes"]) for entry in message.logprobs)
        assert message.content == data.decode() == "one So"


def test_log_probabilities_of_half_characters_keep_their_bytes(stage: Stage) -> None:
    script = {"pieces": [{"hex": "e282"}, {"hex": "ac"}]}
    body = {"model": "plain", "messages": HI, "logprobs": True, "top_logprobs": 1}
    message = stage.play(CHAT, body, script).message
    assert [bytes(entry["bytes"]) for entry in message.logprobs] == [b"\xe2\x82", b"\xac"]


def test_impossible_tokens_have_a_number(stage: Stage) -> None:
    script = {"pieces": ["x"], "logprobs": [[-0.5, "-inf"]]}
    body = {"model": "plain", "messages": HI, "logprobs": True, "top_logprobs": 2}
    entry = stage.play(CHAT, body, script).message.logprobs[0]
    assert min(top["logprob"] for top in entry["top_logprobs"]) == -9999.0


def test_the_start_of_a_message_knows_its_prompt(stage: Stage) -> None:
    got = chunks(stage, {"pieces": ["x", "y"]}, MESSAGES)
    usage = got[0]["message"]["usage"]
    assert sum(value for key, value in usage.items() if key.endswith("input_tokens") and value) > 0
    assert got[-2]["usage"]["output_tokens"] == 2


def test_every_block_of_thinking_is_signed_and_taken_back(stage: Stage) -> None:
    script = {"pieces": ["<think>hum</think>", "yes"]}
    body = {"model": "think", "messages": HI, "max_tokens": 2000}
    answer: Any = stage.play(MESSAGES, body, script).response.json()
    turns = [*HI, {"role": "assistant", "content": answer["content"]}, *HI]
    again = stage.play(MESSAGES, {**body, "messages": turns}, script)
    assert again.status == 200
    assert "x-tokenwire-ignored" not in again.response.headers


def test_requests_at_once_are_as_if_alone(stage: Stage) -> None:
    """Interleaved token by token, on one engine, with two who leave half way."""
    plays = [_interleaved(index) for index in range(24)]
    headers = [stage.script({"pieces": list(text)}) for text, _ in plays]
    bodies = [json.dumps(body).encode() for _, body in plays]
    requests = [
        HttpRequest("POST", CHAT, {**header, "x-request-id": "same"}, body=body)
        for header, body in zip(headers, bodies, strict=True)
    ]

    async def ask(request: HttpRequest, *, leaves: bool) -> bytes:
        exchange = Recording()
        task = asyncio.ensure_future(stage.client.deployment.flow.handle(request, exchange))
        # Why done(): how many chunks an answer is written in depends on how busy the loop is.
        while leaves and len(exchange.chunks) < 8 and not task.done():
            await asyncio.sleep(0)
        if leaves:
            exchange.leave()
        await task
        return b"".join(exchange.chunks)

    async def all_at_once() -> list[bytes]:
        return await asyncio.gather(
            *(ask(request, leaves=index % 12 == 5) for index, request in enumerate(requests))
        )

    together = stage.client.run(all_at_once())
    for index, request in enumerate(requests):
        alone = stage.client.send(request).body
        if index % 12 == 5:
            continue
        assert _said(together[index]) == _said(alone)
    running = [s.running for s in stage.client.deployment.engine_statuses().values()]
    assert running == [0] * len(running)
    ids = {_first(body)["id"] for body in together}
    assert len(ids) == len(together), "an id that clients choose names nothing of ours"


def _interleaved(index: int) -> tuple[str, dict[str, Any]]:
    tool = f"tool_{index}"
    text = f"<think>thought {index}</think>" * (index % 2) + CALLS % (tool, f"item {index}")
    body = {"model": "hermes", "messages": HI, "stream": True, "tools": [function(tool)]}
    return text, body


def _first(body: bytes) -> Any:
    return json.loads(SseReader().push(body)[0].data)


def _said(body: bytes) -> list[Any]:
    """Deltas, without the ids that differ from answer to answer."""
    events = [event.data for event in SseReader().push(body)]
    chunks = [json.loads(data)["choices"] for data in events if data != "[DONE]"]
    for choices in chunks:
        for choice in choices:
            for call in choice["delta"].get("tool_calls", ()):
                call.pop("id", None)
    return chunks
