"""The codec's inverse: a Call to a request, a reply's bytes to events. Pure; kits check with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

import msgspec

from tokenwire.core.call import Call
from tokenwire.core.events import (
    Event,
    Failed,
    Finished,
    FinishReason,
    Logprobs,
    PartDelta,
    PartEnd,
    PartStart,
    Started,
    TokenLogprob,
    Usage,
)
from tokenwire.core.ports.codec import CodecClient, ReplyReader
from tokenwire.core.wire import HttpRequest
from tokenwire.plugins.protocols._shared.openai_errors import kind_of
from tokenwire.plugins.protocols._shared.replies import BodyReader, StreamReader
from tokenwire.plugins.protocols.chat_completions.answer import (
    AnswerBody,
    Chunk,
    Delta,
    LogprobsField,
    Message,
    ToolCallDelta,
    UsageField,
)
from tokenwire.plugins.protocols.chat_completions.request import encode_call

__all__ = ("ChatClient",)

_chunk: Final = msgspec.json.Decoder(Chunk)
_body: Final = msgspec.json.Decoder(AnswerBody)
NAME: Final = "Chat Completions"


@final
class ChatClient(CodecClient):
    """Asks as this protocol does. Stateless."""

    def request(self, call: Call) -> HttpRequest:
        headers = {"content-type": "application/json"}
        return HttpRequest("POST", "/v1/chat/completions", headers, body=encode_call(call))

    def reader(self, call: Call) -> ReplyReader:
        if call.output.stream:
            return StreamReader(NAME, Chunks().message)
        return BodyReader(NAME, _read_body)


@final
class Chunks:
    """Reads the chunks of one stream."""

    __slots__ = ("_is_started", "_kinds", "_usage")

    def __init__(self) -> None:
        self._is_started = False
        self._kinds: dict[int, str] = {}
        self._usage: Usage | None = None

    def message(self, data: str) -> list[Event]:
        events: list[Event] = []
        if data != "[DONE]":
            self._chunk(_chunk.decode(data), events)
        elif self._usage is not None:
            events.append(self._usage)
        return events

    def _chunk(self, chunk: Chunk, events: list[Event]) -> None:
        if chunk.error is not None:
            kind = kind_of(chunk.error.type, chunk.error.code)
            events.append(Failed(kind, chunk.error.message))
            return
        if not self._is_started:
            self._is_started = True
            events.append(Started(0, fingerprint=chunk.system_fingerprint or ""))
        if chunk.usage is not None:
            self._usage = _usage(chunk.usage)
        for choice in chunk.choices:
            if choice.logprobs is not None:
                events.append(Logprobs(choice.index, _logprobs(choice.logprobs)))
            self._delta(choice.index, choice.delta, events)
            if choice.finish_reason is not None:
                self._end(choice.index, events, complete=choice.finish_reason != "length")
                finish = _finished(choice.index, choice.finish_reason, choice.stop_reason)
                events.append(finish)

    def _delta(self, index: int, delta: Delta, events: list[Event]) -> None:
        if reasoning := delta.reasoning_content or delta.reasoning:
            self._open(index, "reasoning", events)
            events.append(PartDelta(index, reasoning))
        if delta.content:
            self._open(index, "text", events)
            events.append(PartDelta(index, delta.content))
        for call in delta.tool_calls or ():
            self._call(index, call, events)

    def _open(self, index: int, kind: str, events: list[Event]) -> None:
        if self._kinds.get(index) != kind:
            self._end(index, events)
            self._kinds[index] = kind
            events.append(PartStart(index, kind))  # type: ignore[arg-type]

    def _call(self, index: int, call: ToolCallDelta, events: list[Event]) -> None:
        if call.id is not None:
            self._end(index, events)
            self._kinds[index] = "tool_call"
            events.append(_call_start(index, call))
        text = call.function.arguments if call.function else ""
        text = text or (call.custom.input if call.custom else "") or ""
        if text:
            events.append(PartDelta(index, text))

    def _end(self, index: int, events: list[Event], *, complete: bool = True) -> None:
        kind = self._kinds.pop(index, None)
        if kind is not None:
            events.append(PartEnd(index, complete=complete or kind != "tool_call"))


def _read_body(data: bytes) -> list[Event]:
    body = _body.decode(data)
    if body.error is not None:
        kind = kind_of(body.error.type, body.error.code)
        return [Failed(kind, body.error.message)]
    events: list[Event] = [Started(0, fingerprint=body.system_fingerprint or "")]
    for choice in body.choices:
        if choice.logprobs is not None:
            events.append(Logprobs(choice.index, _logprobs(choice.logprobs)))
        _message(choice.index, choice.message, events, cut=choice.finish_reason == "length")
        events.append(_finished(choice.index, choice.finish_reason, choice.stop_reason))
    if body.usage is not None:
        events.append(_usage(body.usage))
    return events


def _message(index: int, message: Message, events: list[Event], *, cut: bool) -> None:
    if reasoning := message.reasoning_content or message.reasoning:
        events += (PartStart(index, "reasoning"), PartDelta(index, reasoning), PartEnd(index))
    if message.content:
        events += (PartStart(index, "text"), PartDelta(index, message.content), PartEnd(index))
    calls = message.tool_calls or ()
    for k, call in enumerate(calls):
        events.append(_call_start(index, call))
        text = call.function.arguments if call.function else None
        text = text or (call.custom.input if call.custom else None)
        if text:
            events.append(PartDelta(index, text))
        events.append(PartEnd(index, complete=not (cut and k == len(calls) - 1)))


def _call_start(index: int, call: ToolCallDelta) -> PartStart:
    named = call.custom or call.function
    name = named.name if named is not None and named.name is not None else ""
    return PartStart(index, "tool_call", name, call.id, custom=call.custom is not None)


def _finished(index: int, word: str, matched: str | None) -> Finished:
    reasons: Mapping[str, FinishReason] = {
        "stop": "stop" if matched is None else "stop_sequence",
        "length": "length",
        "tool_calls": "tool_calls",
    }
    return Finished(index, reasons[word], matched)


def _logprobs(field: LogprobsField) -> tuple[TokenLogprob, ...]:
    return tuple(
        TokenLogprob(
            0,
            entry.token,
            bytes(entry.bytes or ()),
            entry.logprob,
            tuple(
                TokenLogprob(0, top.token, bytes(top.bytes or ()), top.logprob)
                for top in entry.top_logprobs
            ),
        )
        for entry in field.content or ()
    )


def _usage(field: UsageField) -> Usage:
    return Usage(
        field.prompt_tokens,
        field.completion_tokens,
        cached_tokens=field.prompt_tokens_details.cached_tokens,
        reasoning_tokens=field.completion_tokens_details.reasoning_tokens,
    )
