"""The codec's inverse: a Call to a request, a reply's bytes to events. Pure; kits check with it."""

from __future__ import annotations

from collections.abc import Mapping
from math import nan
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
from tokenwire.plugins.protocols.completions.answer import (
    AnswerBody,
    Choice,
    LogprobsField,
    UsageField,
)
from tokenwire.plugins.protocols.completions.entries import unspelled
from tokenwire.plugins.protocols.completions.request import encode_call

__all__ = ("CompletionsClient",)

_body: Final = msgspec.json.Decoder(AnswerBody)
NAME: Final = "Completions"


@final
class CompletionsClient(CodecClient):
    """Asks as this protocol does. Stateless."""

    def request(self, call: Call) -> HttpRequest:
        headers = {"content-type": "application/json"}
        return HttpRequest("POST", "/v1/completions", headers, body=encode_call(call))

    def reader(self, call: Call) -> ReplyReader:
        if call.output.stream:
            return StreamReader(NAME, Reading().message)
        return BodyReader(NAME, _read_body)


class Reading:
    """What chunks and bodies have in common: choices to events."""

    __slots__ = ("_is_started", "_open", "_usage")

    def __init__(self) -> None:
        self._is_started = False
        self._open: set[int] = set()
        self._usage: Usage | None = None

    def message(self, data: str) -> list[Event]:
        return self.ended if data == "[DONE]" else self.read(_body.decode(data))

    def read(self, body: AnswerBody) -> list[Event]:
        if body.error is not None:
            return [Failed(kind_of(body.error.type, body.error.code), body.error.message)]
        events: list[Event] = []
        if not self._is_started:
            self._is_started = True
            events.append(Started(0, fingerprint=body.system_fingerprint or ""))
        if body.usage is not None:
            self._usage = _usage(body.usage)
        for choice in body.choices:
            self._choice(choice, events)
        return events

    @property
    def ended(self) -> list[Event]:
        return [] if self._usage is None else [self._usage]

    def _choice(self, choice: Choice, events: list[Event]) -> None:
        index = choice.index
        if choice.text:
            if index not in self._open:
                self._open.add(index)
                events.append(PartStart(index, "text"))
            if choice.logprobs is not None:
                events.append(Logprobs(index, _logprobs(choice.logprobs)))
            events.append(PartDelta(index, choice.text))
        if choice.finish_reason is not None:
            if index in self._open:
                events.append(PartEnd(index))
            events.append(_finished(index, choice.finish_reason, choice.stop_reason))


def _read_body(data: bytes) -> list[Event]:
    reading = Reading()
    return [*reading.read(_body.decode(data)), *reading.ended]


def _finished(index: int, word: str, matched: str | None) -> Finished:
    reasons: Mapping[str, FinishReason] = {
        "stop": "stop" if matched is None else "stop_sequence",
        "length": "length",
    }
    return Finished(index, reasons[word], matched)


def _logprobs(field: LogprobsField) -> tuple[TokenLogprob, ...]:
    tokens: list[TokenLogprob] = []
    for text, value in zip(field.tokens, field.token_logprobs, strict=True):
        data = unspelled(text)
        spelled = data.decode("utf-8", "replace")
        tokens.append(TokenLogprob(0, spelled, data, nan if value is None else value))
    return tuple(tokens)


def _usage(field: UsageField) -> Usage:
    return Usage(
        field.prompt_tokens,
        field.completion_tokens,
        cached_tokens=field.prompt_tokens_details.cached_tokens,
        reasoning_tokens=field.completion_tokens_details.reasoning_tokens,
    )
