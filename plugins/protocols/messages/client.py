"""The codec turned round: Calls to request bytes, reply bytes to events. Pure; the tests' oracle.

What this wire cannot carry is lost (`MessagesCodec.losses`); whether a call at the very end was cut
off is told from the stop reason and from whether its arguments are whole JSON.
"""

from __future__ import annotations

from typing import Final, final

import msgspec

from tokenwire.core.call import Call
from tokenwire.core.errors import ErrorKind, ReplyError
from tokenwire.core.events import (
    Event,
    Failed,
    Finished,
    FinishReason,
    PartDelta,
    PartEnd,
    PartKind,
    PartStart,
    Started,
    Usage,
)
from tokenwire.core.ports.codec import CodecClient, ReplyReader
from tokenwire.core.wire import HttpRequest
from tokenwire.plugins.protocols._shared.error_types import TYPES
from tokenwire.plugins.protocols._shared.replies import BodyReader, StreamReader
from tokenwire.plugins.protocols.messages import reply_schema as wire
from tokenwire.plugins.protocols.messages.client_body import DEFAULT_MAX_TOKENS, request_body
from tokenwire.plugins.protocols.messages.errors import TOO_LONG
from tokenwire.plugins.protocols.messages.shapes import STOP_REASONS

__all__ = ("MessagesClient", "request")

NAME: Final = "Messages"
VERSION: Final = "2023-06-01"
INTERLEAVED: Final = "interleaved-thinking-2025-05-14"
REASONS: Final[dict[wire.StopReason, FinishReason]] = {
    **{word: reason for reason, word in STOP_REASONS.items()},
    "refusal": "stop",
}
CUT: Final = ("max_tokens", "model_context_window_exceeded")
KINDS: Final = {word: kind for kind, word in reversed(TYPES.items())} | {
    "invalid_request_error": ErrorKind.INVALID_REQUEST,
    "api_error": ErrorKind.INTERNAL,
}

_events: Final = msgspec.json.Decoder(wire.StreamEvent)
_body: Final = msgspec.json.Decoder(wire.Message | wire.ErrorBody)
_untyped: Final = msgspec.json.Decoder()


def request(call: Call, *, is_count: bool = False) -> HttpRequest:
    """The request that a server decodes to this call (but for what the wire cannot carry)."""
    path = "/v1/messages/count_tokens" if is_count else "/v1/messages"
    headers = {"content-type": "application/json", "anthropic-version": VERSION}
    body = request_body(call, is_count=is_count)
    budget, limit = call.dialogue.reasoning.budget, call.stopping.max_tokens or DEFAULT_MAX_TOKENS
    if budget is not None and budget >= limit and not is_count:
        # Why: such a budget is taken only where it is for several answers together.
        headers["anthropic-beta"] = INTERLEAVED
    return HttpRequest("POST", path, headers=headers, body=body)


@final
class MessagesClient(CodecClient):
    """Asks as this protocol does. Stateless."""

    def request(self, call: Call) -> HttpRequest:
        return request(call)

    def reader(self, call: Call) -> ReplyReader:
        if call.output.stream:
            return StreamReader(NAME, StreamEvents().message)
        return BodyReader(NAME, _read_body)


@final
class StreamEvents:
    """Reads the events of one stream."""

    __slots__ = ("_arguments", "_ended", "_kind")

    def __init__(self) -> None:
        self._kind: PartKind = "text"
        self._arguments: list[str] = []
        self._ended = False  # A block has ended whose PartEnd waits for what comes next.

    def message(self, data: str) -> list[Event]:
        events: list[Event] = []
        self._read(_events.decode(data), events)
        return events

    def _read(self, event: wire.StreamEvent, events: list[Event]) -> None:
        match event:
            case wire.MessageStart(message):
                events.append(_started(message.usage))
            case wire.BlockStart(_, block):
                self._end_part(events, stop=None)
                start = _part_start(block)
                self._kind, self._arguments = start.kind, []
                events.append(start)
            case wire.BlockDelta(_, delta):
                text = _text(delta)
                if text:
                    events.append(PartDelta(0, text))
                    if self._kind == "tool_call":
                        self._arguments.append(text)
            case wire.BlockStop():
                self._ended = True
            case wire.MessageDelta(delta, usage):
                self._end_part(events, stop=delta.stop_reason)
                events.append(Finished(0, REASONS[delta.stop_reason], delta.stop_sequence))
                events.append(_usage(usage))
            case wire.MessageStop() | wire.Ping():
                pass
            case wire.ErrorBody(error):
                self._end_part(events, stop=None)
                events.append(_failed(error))

    def _end_part(self, events: list[Event], *, stop: wire.StopReason | None) -> None:
        if self._ended:
            is_cut = self._kind == "tool_call" and _is_cut("".join(self._arguments), stop)
            events.append(PartEnd(0, complete=not is_cut))
            self._ended = False


def _read_body(data: bytes) -> list[Event]:
    match _body.decode(data):
        case wire.ErrorBody(error):
            return [_failed(error)]
        case wire.Message() as message:
            return _unfolded(message)


def _unfolded(message: wire.Message) -> list[Event]:
    events: list[Event] = [_started(message.usage)]
    last = len(message.content) - 1
    for k, block in enumerate(message.content):
        events.append(_part_start(block))
        match block:
            case wire.TextBlock(text) | wire.ThinkingBlock(text):
                is_cut = False
            case wire.RedactedBlock():
                text, is_cut = "", False
            case wire.ToolUseBlock():
                text = bytes(block.input).decode()
                is_cut = k == last and message.stop_reason in CUT
        if text:
            events.append(PartDelta(0, text))
        events.append(PartEnd(0, complete=not is_cut))
    if message.stop_reason is None:
        raise ReplyError("no whole reply of Messages: its stop_reason is null")
    events.append(Finished(0, REASONS[message.stop_reason], message.stop_sequence))
    events.append(_usage(message.usage))
    return events


def _part_start(block: wire.Block) -> PartStart:
    match block:
        case wire.TextBlock():
            return PartStart(0, "text")
        case wire.ThinkingBlock() | wire.RedactedBlock():
            return PartStart(0, "reasoning")
        case wire.ToolUseBlock(call_id, name):
            return PartStart(0, "tool_call", name=name, call_id=call_id)


def _text(
    delta: wire.TextDelta | wire.ThinkingDelta | wire.SignatureDelta | wire.InputJsonDelta,
) -> str:
    match delta:
        case wire.TextDelta(text) | wire.ThinkingDelta(text) | wire.InputJsonDelta(text):
            return text
        case wire.SignatureDelta():
            return ""


def _is_cut(arguments: str, stop: wire.StopReason | None) -> bool:
    if stop not in CUT:
        return False
    try:
        _untyped.decode(arguments)
    except msgspec.MsgspecError:
        return True
    return False


def _started(usage: wire.Usage) -> Started:
    cached, created = usage.cache_read_input_tokens, usage.cache_creation_input_tokens
    return Started(
        usage.input_tokens + cached + created,
        cached,
        cache_creation_tokens=created,
        cache_creation_long_tokens=_long(usage),
    )


def _usage(usage: wire.Usage) -> Usage:
    cached, created = usage.cache_read_input_tokens, usage.cache_creation_input_tokens
    details = usage.output_tokens_details
    return Usage(
        prompt_tokens=usage.input_tokens + cached + created,
        completion_tokens=usage.output_tokens,
        cached_tokens=cached,
        cache_creation_tokens=created,
        reasoning_tokens=details.thinking_tokens if details else 0,
        cache_creation_long_tokens=_long(usage),
    )


def _long(usage: wire.Usage) -> int:
    return usage.cache_creation.ephemeral_1h_input_tokens if usage.cache_creation else 0


def _failed(error: wire.ErrorDetail) -> Failed:
    if error.message.startswith(TOO_LONG):
        return Failed(ErrorKind.CONTEXT_LENGTH, error.message)
    return Failed(KINDS.get(error.type, ErrorKind.INTERNAL), error.message)
