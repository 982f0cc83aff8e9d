"""Plays a request with a told output through the whole flow, and reads the answer back strictly.

`Stage.play` is one request; `Stage.play_all` is one case in every cutting and mode, and asserts the
laws that hold for every case: any cutting gives the same message, a stream folds to the unary body,
nothing leaks, and the official clients build the same message.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib import import_module
from itertools import count
from typing import Any

import anthropic
import openai
from jiter import from_json

from tests.cases.cutting import Script, cuttings
from tests.cases.message import Call, read_chat, read_messages
from tests.cases.responses_message import read_responses
from tokenwire.core.config import Config, ModelConfig, PluginUse, ServerConfig
from tokenwire.core.prompt import Prompt
from tokenwire.core.testing.client import LocalClient, Response
from tokenwire.core.wire import HttpRequest

__all__ = (
    "CHAT",
    "FORMATS",
    "MESSAGES",
    "RESPONSES",
    "Played",
    "Stage",
    "compared",
    "to_messages",
    "to_responses",
)

CHAT, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/messages", "/v1/responses"
READERS = {CHAT: read_chat, MESSAGES: read_messages, RESPONSES: read_responses}
FORMATS = ("plain", "hermes", "think", "hermes+think", "sentencepiece", "harmony")
HINTS = ("format", "grammar", "prompt_has")
"""Of a case's output, what is no part of a script."""
SECRETS = ("Traceback", "/site-packages/", ".py")
BROKEN = "\ufffd"


class Played:
    """A response, and what it says."""

    def __init__(self, path: str, response: Response) -> None:
        self.response = response
        self.has_texts = path != MESSAGES
        """Arguments are text, in either mode."""
        self.status = response.status
        self.choices = READERS[path](response)
        self.message = self.choices[0]


class Stage:
    """A deployment with one model a dialect, each on the mock and the script tokenizer."""

    def __init__(self, context_length: int = 8192) -> None:
        engine = {"context_length": context_length}
        models = tuple(
            ModelConfig(
                name=name,
                engine=PluginUse("mock", engine),
                tokenizer=PluginUse("script"),
                dialect=name,
            )
            for name in FORMATS
        )
        self.client = LocalClient(Config(server=ServerConfig(debug=True), models=models))
        self._names = count()

    def __enter__(self) -> Stage:
        self.client.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.client.__exit__(*error)

    def script(self, script: Script) -> dict[str, str]:
        """Put it under a fresh name -> the header that asks for it."""
        name = f"case-{next(self._names)}"
        self.client.script(name, {key: script[key] for key in script if key not in HINTS})
        return {"x-mock-script": name}

    def play(self, path: str, body: object, script: Script | None = None) -> Played:
        headers = {} if script is None else self.script(script)
        return Played(path, self.client.post(path, body, headers))

    def prompt(self, response: Response) -> Prompt:
        """What the request was rendered to."""
        recent = self.client.deployment.recent_prompt(response.headers["x-request-id"])
        assert recent is not None
        return recent.prompt

    def play_all(
        self, path: str, body: Mapping[str, Any], script: Script, *, hides: str = BROKEN
    ) -> Played:
        """The unary answer to the output as it was given, once every law has been seen to hold.

        `hides`: a text that no answer holds.
        """
        given = self.play(path, _mode(path, body, stream=False, is_given=True), script)
        for name, cut in cuttings(script):
            headers = self.script(cut)
            for stream in (False, True):
                asked = _mode(path, body, stream=stream, is_given=name == "given")
                played = Played(path, self.client.post(path, asked, headers))
                where = f"cut {name}, {'stream' if stream else 'unary'}"
                assert played.status == given.status, where
                assert compared(played) == compared(given), where
                _no_leak(played.response, where, hides)
                if name == "given":
                    tokens = [choice.output_tokens for choice in given.choices]
                    assert [c.output_tokens for c in played.choices] == tokens, where
        if given.status == 200:
            self._official(path, body, script, given)
        return given

    # --- official clients ----------------------------------------------------------------------

    def _official(self, path: str, body: Mapping[str, Any], script: Script, given: Played) -> None:
        headers = self.script(script)
        if path == CHAT:
            with self._http(openai) as http:
                self._openai(http, body, headers, given)
        elif path == RESPONSES:
            with self._http(openai) as http:
                self._openai_responses(http, body, headers, given)
        else:
            with self._http(anthropic) as http:
                self._anthropic(http, body, headers, given)

    def _http(self, sdk: Any) -> Any:
        """A client of the HTTP library that this SDK uses, over this stage and no socket."""
        library = import_module(sdk.DefaultHttpxClient.__mro__[1].__module__.partition(".")[0])

        def answer(request: Any) -> Any:
            asked = HttpRequest(
                request.method, request.url.path, dict(request.headers), body=request.read()
            )
            response = self.client.send(asked)
            return library.Response(
                response.status, headers=response.headers, content=response.body
            )

        return library.Client(transport=library.MockTransport(answer))

    def _openai(self, http: Any, body: Mapping[str, Any], headers: Any, given: Played) -> None:
        client = openai.OpenAI(
            base_url="http://local/v1", api_key="none", max_retries=0, http_client=http
        )
        fields: Any = {"model": body["model"], "messages": body["messages"]}
        rest = (*fields, "stream", "stream_options")
        extra = {key: value for key, value in body.items() if key not in rest}
        whole = client.chat.completions.create(**fields, extra_body=extra, extra_headers=headers)
        known: Any = {key: extra.pop(key) for key in ("tools", "n") if key in extra}
        with client.chat.completions.stream(
            **fields, **known, extra_body=extra, extra_headers=headers
        ) as stream:
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
                assert calls == [(call.name, call.arguments) for call in wanted.calls]
                assert choice.finish_reason == wanted.finish

    def _openai_responses(
        self, http: Any, body: Mapping[str, Any], headers: Any, given: Played
    ) -> None:
        client = openai.OpenAI(
            base_url="http://local/v1", api_key="none", max_retries=0, http_client=http
        )
        fields: Any = {key: value for key, value in body.items() if key != "stream"}
        whole = client.responses.create(**fields, extra_headers=headers)
        stream = client.responses.create(**fields, stream=True, extra_headers=headers)
        *_, last = stream
        wanted = given.message
        for response in (whole, last.response):
            calls = [
                (item.name, item.arguments)
                for item in response.output
                if item.type == "function_call"
            ]
            assert response.output_text == (wanted.content or "")
            assert calls == [(call.name, call.arguments) for call in wanted.calls]
            assert response.status == wanted.finish

    def _anthropic(self, http: Any, body: Mapping[str, Any], headers: Any, given: Played) -> None:
        client = anthropic.Anthropic(
            base_url="http://local", api_key="none", max_retries=0, http_client=http
        )
        fields: Any = {key: value for key, value in body.items() if key != "stream"}
        whole = client.messages.create(**fields, extra_headers=headers)
        with client.messages.stream(**fields, extra_headers=headers) as stream:
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


def compared(played: Played) -> list[Any]:
    """What must not depend on mode and cutting."""
    return [
        (
            choice.content or None,
            choice.reasoning,
            [(call.name, _parsed(call, as_text=played.has_texts)) for call in choice.calls],
            choice.finish,
            choice.stop_sequence,
            None if choice.error is None else choice.error.get("type"),
            choice.prompt_tokens,
        )
        for choice in played.choices
    ]


def _parsed(call: Call, *, as_text: bool) -> object:
    """Messages has arguments parsed in its unary body, and of a cut call what is whole."""
    return call.arguments if as_text else from_json(call.arguments.encode(), partial_mode=True)


def _mode(path: str, body: Mapping[str, Any], *, stream: bool, is_given: bool) -> Mapping[str, Any]:
    asked = {key: value for key, value in body.items() if key != "stream_options"}
    asked["stream"] = stream
    if stream and path == CHAT:
        asked["stream_options"] = {"include_usage": True}
    if not is_given:
        # Why: other cuttings have more tokens, and the limit is not what they are about.
        for key in ("max_tokens", "max_completion_tokens", "max_output_tokens"):
            if key in asked:
                asked[key] = 8000
    return asked


def _no_leak(response: Response, where: str, *more: str) -> None:
    text = response.body.decode()
    found = [secret for secret in (*SECRETS, *more) if secret and secret in text]
    assert not found, f"{where}: {found}"


def to_messages(body: Mapping[str, Any]) -> dict[str, Any] | None:
    """A chat request as one of Messages; None where Messages has no such fields."""
    if {"n", "logprobs", "top_logprobs", "seed"} & set(body):
        return None
    asked: dict[str, Any] = {
        "model": body["model"],
        "messages": body["messages"],
        "max_tokens": body.get("max_tokens", 4096),
    }
    if "stop" in body:
        stop = body["stop"]
        asked["stop_sequences"] = [stop] if isinstance(stop, str) else stop
    if tools := body.get("tools"):
        asked["tools"] = [
            {
                "name": tool["function"]["name"],
                "description": tool["function"].get("description", ""),
                "input_schema": tool["function"]["parameters"],
            }
            for tool in tools
        ]
    if body.get("tool_choice") == "none":
        asked["tool_choice"] = {"type": "none"}
    if body.get("parallel_tool_calls") is False:
        asked["tool_choice"] = {"type": "auto", "disable_parallel_tool_use": True}
    return asked


def to_responses(body: Mapping[str, Any]) -> dict[str, Any] | None:
    """A chat request as one of Responses; None where Responses has no such fields."""
    if {"n", "logprobs", "top_logprobs", "seed", "stop", "response_format"} & set(body):
        return None
    asked: dict[str, Any] = {
        "model": body["model"],
        "input": [item for message in body["messages"] for item in _to_items(message)],
    }
    if "max_tokens" in body:
        asked["max_output_tokens"] = body["max_tokens"]
    for key in ("temperature", "parallel_tool_calls", "tool_choice"):
        if key in body:
            asked[key] = body[key]
    if tools := body.get("tools"):
        asked["tools"] = [{"type": "function", **tool["function"]} for tool in tools]
    return asked


def _to_items(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    role, content = message["role"], message.get("content")
    if role == "tool":
        id_ = message["tool_call_id"]
        yield {"type": "function_call_output", "call_id": id_, "output": content}
        return
    if thought := message.get("reasoning_content"):
        part = {"type": "reasoning_text", "text": thought}
        yield {"type": "reasoning", "summary": [], "content": [part]}
    if content or not message.get("tool_calls"):
        yield {"role": role, "content": content}
    for call in message.get("tool_calls") or ():
        yield {"type": "function_call", "call_id": call["id"], **call["function"]}
