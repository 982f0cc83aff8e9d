"""Recorded answers through the official clients: they accept them, and build the same message.

The bytes are handed to a client of its own HTTP library, over no socket.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import anthropic
import openai

from tests.cases.played import CHAT, COMPLETIONS, MESSAGES, RESPONSES, Played
from tokenwire.core.testing.client import Response

__all__ = ("official_clients",)

BASE = "http://local"


def official_clients(
    body: Mapping[str, Any], unary: Response, streamed: Response, wanted: Played
) -> None:
    """`unary` and `streamed` answered `body`; both are `wanted` to the client of its protocol."""
    sdk = anthropic if wanted.path == MESSAGES else openai
    fields = {key: value for key, value in body.items() if key not in ("stream", "stream_options")}
    with _http(sdk, unary, streamed) as http:
        CHECKS[wanted.path](http, fields, wanted)


def _http(sdk: Any, unary: Response, streamed: Response) -> Any:
    """A client of the HTTP library that this SDK uses: it is answered what was recorded."""
    library = import_module(sdk.DefaultHttpxClient.__mro__[1].__module__.partition(".")[0])

    def answer(request: Any) -> Any:
        asks_stream = json.loads(request.read()).get("stream")
        response = streamed if asks_stream else unary
        return library.Response(response.status, headers=response.headers, content=response.body)

    return library.Client(transport=library.MockTransport(answer))


def _openai(http: Any) -> Any:
    return openai.OpenAI(base_url=f"{BASE}/v1", api_key="none", max_retries=0, http_client=http)


def _chat(http: Any, body: Mapping[str, Any], given: Played) -> None:
    client = _openai(http)
    fields: Any = {"model": body["model"], "messages": body["messages"]}
    extra = {key: value for key, value in body.items() if key not in fields}
    whole = client.chat.completions.create(**fields, extra_body=extra)
    known: Any = {key: extra.pop(key) for key in ("tools", "n") if key in extra}
    with client.chat.completions.stream(**fields, **known, extra_body=extra) as stream:
        for _ in stream:
            pass
        # Why not get_final_completion(): it raises where an answer was cut off.
        streamed = stream.current_completion_snapshot
    for completion in (whole, streamed):
        for choice, wanted in zip(completion.choices, given.choices, strict=True):
            message = choice.message
            calls = [
                (call.function.name, call.function.arguments)
                for call in message.tool_calls or ()
                if call.type == "function"
            ]
            assert (message.content or "") == (wanted.content or "")
            assert calls == _calls(wanted.calls)
            assert choice.finish_reason == wanted.finish


def _calls(calls: Sequence[Any]) -> list[tuple[str, str]]:
    return [(call.name, call.arguments) for call in calls]


def _responses(http: Any, fields: Any, given: Played) -> None:
    client = _openai(http)
    whole = client.responses.create(**fields)
    *_, last = client.responses.create(**fields, stream=True)
    wanted = given.message
    for response in (whole, last.response):
        calls = [item for item in response.output if item.type == "function_call"]
        assert response.output_text == (wanted.content or "")
        assert _calls(calls) == _calls(wanted.calls)
        assert response.status == wanted.finish


def _completions(http: Any, fields: Any, given: Played) -> None:
    client = _openai(http)
    own = {key: fields.pop(key) for key in ("model", "prompt")}
    whole = client.completions.create(**own, extra_body=fields)
    texts = dict.fromkeys(range(len(given.choices)), "")
    finishes: dict[int, Any] = {}
    for chunk in client.completions.create(**own, stream=True, extra_body=fields):
        for choice in chunk.choices:
            texts[choice.index] += choice.text
            finishes[choice.index] = choice.finish_reason
    for index, wanted in enumerate(given.choices):
        choice = whole.choices[index]
        assert texts[index] == choice.text == (wanted.content or "")
        assert finishes[index] == choice.finish_reason == wanted.finish


def _messages(http: Any, fields: Any, given: Played) -> None:
    client = anthropic.Anthropic(base_url=BASE, api_key="none", max_retries=0, http_client=http)
    whole = client.messages.create(**fields)
    with client.messages.stream(**fields) as stream:
        streamed = stream.get_final_message()
    wanted = given.message
    for message in (whole, streamed):
        texts = [block.text for block in message.content if block.type == "text"]
        inputs = [
            (block.name, block.input) for block in message.content if block.type == "tool_use"
        ]
        assert "".join(texts) == (wanted.content or "")
        assert inputs == [(call.name, json.loads(call.arguments)) for call in wanted.calls]
        assert message.stop_reason == wanted.finish
        assert message.stop_sequence == wanted.stop_sequence


CHECKS: Mapping[str, Callable[[Any, Any, Played], None]] = {
    CHAT: _chat,
    COMPLETIONS: _completions,
    MESSAGES: _messages,
    RESPONSES: _responses,
}
