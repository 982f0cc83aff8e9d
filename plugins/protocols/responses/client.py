"""The codec turned round: Calls to request bytes, reply bytes to events. The tests' oracle."""

from __future__ import annotations

from typing import Final, final

import msgspec
from msgspec import Struct

from tokenwire.core.call import Call
from tokenwire.core.errors import ErrorKind, ReplyError
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
from tokenwire.plugins.protocols.responses.namespaces import flat_name
from tokenwire.plugins.protocols.responses.request import request_body
from tokenwire.plugins.protocols.responses.tool_search import CALL, SEARCH

__all__ = ("ResponsesClient",)

KINDS: Final = {kind.word: kind for kind in ErrorKind}


class Token(Struct, frozen=True):
    token: str
    logprob: float
    bytes: list[int] = []
    top_logprobs: list[Token] = []


class Part(Struct, frozen=True):
    text: str = ""
    logprobs: list[Token] = []


class Item(Struct, frozen=True):
    type: str
    status: str = "completed"
    name: str = ""
    namespace: str | None = None
    call_id: str | None = None
    arguments: object = ""
    input: str = ""
    content: list[Part] = []
    summary: list[Part] = []


class ErrorField(Struct, frozen=True):
    message: str
    type: str | None = None
    code: str | None = None


class InputDetails(Struct, frozen=True):
    cached_tokens: int = 0
    cache_write_tokens: int = 0


class OutputDetails(Struct, frozen=True):
    reasoning_tokens: int = 0


class UsageField(Struct, frozen=True):
    input_tokens: int
    output_tokens: int
    input_tokens_details: InputDetails = InputDetails()
    output_tokens_details: OutputDetails = OutputDetails()


class Response(Struct, frozen=True):
    status: str
    output: list[Item] = []
    usage: UsageField | None = None
    error: ErrorField | None = None


class StreamEvent(Struct, frozen=True):
    type: str
    response: Response | None = None
    item: Item | None = None
    delta: str = ""
    logprobs: list[Token] = []
    message: str = ""
    code: str | None = None


class ErrorBody(Struct, frozen=True):
    error: ErrorField


NAME: Final = "Responses"

_event: Final = msgspec.json.Decoder(StreamEvent)
_response: Final = msgspec.json.Decoder(Response)
_error: Final = msgspec.json.Decoder(ErrorBody)


@final
class ResponsesClient(CodecClient):
    """Asks in Responses."""

    def request(self, call: Call) -> HttpRequest:
        headers = {"content-type": "application/json"}
        return HttpRequest("POST", "/v1/responses", headers, body=request_body(call))

    def reader(self, call: Call) -> ReplyReader:
        if call.output.stream:
            return StreamReader(NAME, lambda data: _read(_event.decode(data)))
        return BodyReader(NAME, _read_body)


def _read_body(data: bytes) -> list[Event]:
    try:
        response = _response.decode(data)
    except msgspec.MsgspecError:
        return [_failed(_error.decode(data).error)]
    events: list[Event] = [Started(0)]
    for item in response.output:
        events += _unfolded(item)
    return [*events, *_ending(response)]


def _read(event: StreamEvent) -> list[Event]:
    match event.type:
        case "response.created":
            return [Started(0)]
        case "response.output_item.added" if event.item is not None:
            start = _start(event.item)
            return [] if start is None else [start]
        case (
            "response.output_text.delta"
            | "response.reasoning_text.delta"
            | "response.reasoning_summary_text.delta"
            | "response.function_call_arguments.delta"
            | "response.custom_tool_call_input.delta"
        ):
            delta = PartDelta(0, event.delta)
            tokens = tuple(map(_token, event.logprobs))
            return [Logprobs(0, tokens), delta] if tokens else [delta]
        case "response.output_item.done" if event.item is not None:
            return _ended(event.item)
        case "response.completed" | "response.incomplete" if event.response is not None:
            return _ending(event.response)
        case "response.failed" if event.response is not None:
            return [_failed(event.response.error)]
        case "error":
            return [_failed(ErrorField(event.message, code=event.code))]
    return []


def _start(item: Item) -> PartStart | None:
    match item.type:
        case "message":
            return PartStart(0, "text")
        case "reasoning":
            return PartStart(0, "reasoning")
        case "function_call" | "custom_tool_call":
            custom = item.type == "custom_tool_call"
            name = flat_name(item.namespace, item.name)
            return PartStart(0, "tool_call", name, item.call_id, custom)
        case kind if kind == CALL:
            return PartStart(0, "tool_call", SEARCH, item.call_id)
    return None


def _ended(item: Item) -> list[Event]:
    """Of a stream: the arguments of a search come with its end."""
    if _start(item) is None:
        return []
    late = [PartDelta(0, _written(item))] if item.type == CALL else []
    return [*late, _end(item)]


def _written(item: Item) -> str:
    given = item.arguments
    return given if isinstance(given, str) else msgspec.json.encode(given).decode()


def _end(item: Item) -> PartEnd:
    is_call = item.call_id is not None
    return PartEnd(0, complete=not (is_call and item.status == "incomplete"))


def _unfolded(item: Item) -> list[Event]:
    start = _start(item)
    if start is None:
        return []
    texts = [(part.text, part.logprobs) for part in (*item.summary, *item.content)]
    if start.kind == "tool_call":
        texts = [(item.input if start.custom else _written(item), [])]
    events: list[Event] = [start]
    for text, logprobs in texts:
        if logprobs:
            events.append(Logprobs(0, tuple(map(_token, logprobs))))
        if text:
            events.append(PartDelta(0, text))
    return [*events, _end(item)]


def _ending(response: Response) -> list[Event]:
    if response.status == "failed":
        return [_failed(response.error)]
    calls = [item for item in response.output if item.call_id is not None]
    reason: FinishReason = "stop"
    if response.status == "cancelled":
        reason = "cancelled"
    elif response.status == "incomplete":
        reason = "length"
    elif any(item.status == "completed" for item in calls):
        reason = "tool_calls"
    usage = response.usage
    if usage is None:
        raise ReplyError("no whole reply of Responses: its usage is null")
    counted = Usage(
        usage.input_tokens,
        usage.output_tokens,
        usage.input_tokens_details.cached_tokens,
        usage.input_tokens_details.cache_write_tokens,
        usage.output_tokens_details.reasoning_tokens,
    )
    return [Finished(0, reason), counted]


def _failed(error: ErrorField | None) -> Failed:
    if error is None:
        return Failed(ErrorKind.INTERNAL, "the response failed")
    kind = KINDS.get(error.type or "") or kind_of(error.type or "", error.code)
    return Failed(kind, error.message)


def _token(token: Token) -> TokenLogprob:
    top = tuple(map(_token, token.top_logprobs))
    return TokenLogprob(0, token.token, bytes(token.bytes), token.logprob, top)
