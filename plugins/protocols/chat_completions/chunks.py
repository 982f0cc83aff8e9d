"""The JSON of chunks and bodies, with constant pieces encoded once. Knows no order of events."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from tokenwire.core.call import Call
from tokenwire.core.events import Finished, FinishReason, Started, TokenLogprob, Usage
from tokenwire.core.wire import Stamp, escape_breaks

__all__ = (
    "DONE",
    "FINISH_REASONS",
    "Envelope",
    "ReasoningField",
    "finish_fields",
    "logprobs_field",
    "prompt_fields",
    "reply_id",
    "short_fingerprint",
    "usage_field",
)

ReasoningField: TypeAlias = Literal["reasoning_content", "reasoning", "both"]

DONE: Final = b"data: [DONE]\n\n"
DIGITS: Final = 12
FLOOR: Final = -9999.0
"""What stands for a log probability that JSON cannot hold, or that is below it."""

# A call cut off by a deadline or a lost client was cut, which clients read from `length`.
FINISH_REASONS: Final[dict[FinishReason, str]] = {
    "stop": "stop",
    "stop_sequence": "stop",
    "length": "length",
    "context_length": "length",
    "tool_calls": "tool_calls",
    "cancelled": "length",
}

_encode: Final = msgspec.json.Encoder().encode


def reply_id(stamp: Stamp) -> str:
    return f"chatcmpl-{stamp.id}"


def short_fingerprint(fingerprint: str) -> str:
    """The render's fingerprint (hex) in the form that clients know; "" stays. Each chunk has it, so
    it is cut to 48 bits, which are enough to tell renders apart."""
    return fingerprint and f"fp_{fingerprint[:DIGITS]}"


def finish_fields(finished: Finished) -> dict[str, object]:
    """`stop_reason` is the stop string that matched, as other servers name it."""
    fields: dict[str, object] = {"finish_reason": FINISH_REASONS[finished.reason]}
    if finished.matched is not None:
        fields["stop_reason"] = finished.matched
    return fields


def usage_field(usage: Usage) -> dict[str, object]:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


def logprobs_field(tokens: Sequence[TokenLogprob]) -> dict[str, object]:
    content = [
        _token(token) | {"top_logprobs": [_token(other) for other in token.top]} for token in tokens
    ]
    return {"content": content, "refusal": None}


def prompt_fields(started: Started) -> dict[str, object]:
    """What is said of the prompt's tokens, in the form of vLLM's fields of these names. A rank is
    told of the likeliest tokens that were asked for."""
    fields: dict[str, object] = {}
    if started.prompt_ids:
        fields["prompt_token_ids"] = started.prompt_ids
    if started.prompt_logprobs:
        fields["prompt_logprobs"] = [each and _ranked(each) for each in started.prompt_logprobs]
    return fields


def _ranked(token: TokenLogprob) -> dict[str, object]:
    ranks = {other.id: rank for rank, other in enumerate(token.top, 1)}
    return {
        str(each.id): {
            "logprob": _floored(each.logprob),
            "rank": ranks.get(each.id),
            "decoded_token": each.text,
        }
        for each in (token, *token.top)
    }


def _ids(ids: Sequence[int]) -> bytes:
    return b',"token_ids":' + _encode(ids) if ids else b""


def _token(token: TokenLogprob) -> dict[str, object]:
    value = _floored(token.logprob)
    return {"token": token.text, "logprob": value, "bytes": list(token.bytes)}


def _floored(value: float) -> float:
    return FLOOR if math.isnan(value) or value < FLOOR else value


class Envelope:
    """What all chunks of one stream share, encoded once the (short) fingerprint is known."""

    __slots__ = ("_head", "_tail")

    def __init__(self, call: Call, stamp: Stamp, fingerprint: str) -> None:
        head: dict[str, object] = {
            "id": reply_id(stamp),
            "object": "chat.completion.chunk",
            "created": int(stamp.time),
            "model": call.model,
        }
        if fingerprint:
            head["system_fingerprint"] = fingerprint
        self._head = b"data: " + escape_breaks(_encode(head))[:-1] + b',"choices":['
        # Why: with usage asked for, OpenAI sends null in every chunk but the last.
        self._tail = b'],"usage":null}\n\n' if call.output.usage else b"]}\n\n"

    def count(self, usage: Usage) -> None:
        """From now on every chunk says what was used so far."""
        self._tail = b'],"usage":' + _encode(usage_field(usage)) + b"}\n\n"

    def around(self, choice: int, before: bytes, after: bytes) -> tuple[bytes, bytes]:
        """Prefix and suffix of the chunks of `choice` whose delta is before + text + after."""
        prefix = self._head + b'{"index":%d,"delta":{' % choice + before
        return prefix, after + b'},"logprobs":null,"finish_reason":null}' + self._tail

    def delta(
        self,
        choice: int,
        delta: bytes,
        *,
        logprobs: dict[str, object] | None = None,
        ids: Sequence[int] = (),
    ) -> bytes:
        """One chunk; `delta` is the inside of its object."""
        fields = b'{"index":%d,"delta":{%b},"logprobs":%b,"finish_reason":null%b}'
        entries = escape_breaks(_encode(logprobs)) if logprobs is not None else b"null"
        return self._head + fields % (choice, delta, entries, _ids(ids)) + self._tail

    def finish(self, finished: Finished, ids: Sequence[int] = ()) -> bytes:
        fields = escape_breaks(_encode(finish_fields(finished)))[1:-1] + _ids(ids)
        choice = b'{"index":%d,"delta":{},"logprobs":null,%b}' % (finished.choice, fields)
        return self._head + choice + self._tail

    def begin(self, choice: int, delta: bytes, about: bytes) -> bytes:
        """The first chunk of a choice; `about` is what is said beside the choices, after them."""
        fields = b'{"index":%d,"delta":{%b},"logprobs":null,"finish_reason":null}'
        head, _, tail = self._tail.partition(b"]")
        return self._head + fields % (choice, delta) + head + b"]" + about + tail

    def usage(self, usage: Usage) -> bytes:
        return self._head + b'],"usage":' + _encode(usage_field(usage)) + b"}\n\n"
