"""What streams and unary replies have in common: ids, stop reasons, usage, a call's input. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from tokenwire.core.events import Finished, FinishReason, Started, Usage
from tokenwire.core.wire import Stamp
from tokenwire.plugins.protocols.messages import reply_schema as wire
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

_parse: Final = msgspec.json.Decoder().decode
NO_INPUT: Final = Raw(b"{}")
OWN_ID: Final = re.compile(r"toolu_[A-Za-z0-9_]+")


def tool_id(given: str | None, stamp: Stamp, k: int) -> str:
    """The id of an answer's k-th call. A dialect's own id stays only where it has the shape that
    clients of this wire take (Kimi's `functions.name:0` has not)."""
    if given is not None and OWN_ID.fullmatch(given):
        return given
    return f"toolu_{stamp.token(k + 1)}"


def tool_input(text: str) -> Raw:
    """Arguments as they were written; of a call that was cut off, the members that are whole."""
    if not text:
        return NO_INPUT
    try:
        _parse(text)
    except (msgspec.MsgspecError, RecursionError):
        text = whole_members(text)
    return Raw(text.encode())


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
    return _usage(started.prompt_tokens, started.cached_tokens, 0, 0)


def total_usage(usage: Usage) -> wire.Usage:
    total = _usage(
        usage.prompt_tokens,
        usage.cached_tokens,
        usage.cache_creation_tokens,
        usage.completion_tokens,
    )
    return replace(total, output_tokens_details=wire.OutputDetails(usage.reasoning_tokens))


def _usage(prompt: int, cached: int, created: int, output: int) -> wire.Usage:
    """This wire counts the parts of a prompt apart: new, written to the cache, read from it."""
    return wire.Usage(
        input_tokens=max(0, prompt - cached - created),
        cache_creation_input_tokens=created,
        cache_read_input_tokens=cached,
        output_tokens=output,
    )
