"""What streams and unary replies have in common: ids, stop reasons, usage, a call's input. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final

from msgspec import Raw
from msgspec.structs import replace

from tokenwire.core.errors import RequestError
from tokenwire.core.events import Finished, FinishReason, Started, Usage
from tokenwire.core.json_body import read_object
from tokenwire.core.wire import Stamp
from tokenwire.plugins.protocols.messages import reply_schema as wire
from tokenwire.plugins.protocols.messages.input_json import InputJson
from tokenwire.plugins.protocols.messages.partial_json import whole_members

__all__ = (
    "NO_INPUT",
    "STOP_REASONS",
    "message",
    "stop_delta",
    "tool_id",
    "tool_input",
    "total_usage",
    "usage_at_start",
)

STOP_REASONS: Final[dict[FinishReason, wire.StopReason]] = {
    "stop": "end_turn",
    "stop_sequence": "stop_sequence",
    "length": "max_tokens",
    "context_length": "model_context_window_exceeded",
    "tool_calls": "tool_use",
    # Why: the turn is not over and nobody refused; the word for "send it back to go on" is nearest.
    "cancelled": "pause_turn",
}

NO_INPUT: Final = Raw(b"{}")
OWN_ID: Final = re.compile(r"toolu_[A-Za-z0-9_]+")


def tool_id(given: str | None, stamp: Stamp, k: int) -> str:
    """The id of an answer's k-th call. A dialect's own id stays only where it has the shape that
    clients of this wire take (Kimi's `functions.name:0` has not)."""
    if given is not None and OWN_ID.fullmatch(given):
        return given
    return f"toolu_{stamp.token(k + 1)}"


def tool_input(text: str, *, complete: bool = True) -> Raw:
    """A call's arguments as a unary body has them: what the pieces of a stream add up to. Of a call
    that was cut off, the members that are whole; of a key written twice, the last one."""
    machine = InputJson()
    pieces = machine.push(text) + machine.close(complete=complete)
    if not pieces:
        return NO_INPUT
    value = pieces if complete else whole_members(pieces)
    try:
        read_object(f'{{"messages":[{value}]}}'.encode())
    except RequestError:
        return Raw(json.dumps(json.loads(value), ensure_ascii=False).encode())
    return Raw(value.encode())


def message(
    stamp: Stamp,
    model: str,
    usage: wire.Usage,
    *,
    content: Sequence[wire.Block] = (),
    stop: wire.StopDelta | None = None,
) -> wire.Message:
    """Without `stop` it is the message as it begins."""
    return wire.Message(
        id=f"msg_{stamp.token(0)}",
        role="assistant",
        model=model,
        content=content,
        stop_reason=stop.stop_reason if stop is not None else None,
        stop_sequence=stop.stop_sequence if stop is not None else None,
        usage=usage,
    )


def stop_delta(end: Finished) -> wire.StopDelta:
    matched = end.matched if end.reason == "stop_sequence" else None
    return wire.StopDelta(STOP_REASONS[end.reason], matched)


def usage_at_start(started: Started) -> wire.Usage:
    return _usage(
        started.prompt_tokens,
        started.cached_tokens,
        started.cache_creation_tokens,
        started.cache_creation_long_tokens,
        0,
    )


def total_usage(usage: Usage) -> wire.Usage:
    total = _usage(
        usage.prompt_tokens,
        usage.cached_tokens,
        usage.cache_creation_tokens,
        usage.cache_creation_long_tokens,
        usage.completion_tokens,
    )
    return replace(total, output_tokens_details=wire.OutputDetails(usage.reasoning_tokens))


def _usage(prompt: int, cached: int, created: int, long: int, output: int) -> wire.Usage:
    """This wire counts the parts of a prompt apart: new, written to the cache, read from it."""
    return wire.Usage(
        input_tokens=max(0, prompt - cached - created),
        cache_creation_input_tokens=created,
        cache_read_input_tokens=cached,
        output_tokens=output,
        cache_creation=wire.CacheCreation(created - long, long),
    )
