"""The JSON of a response: its head from the request, items, usage, statuses. Knows no order.

Bodies are put together from bytes: what the request said is said back as it was written.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from tokenwire.core.call import Call
from tokenwire.core.errors import ErrorKind
from tokenwire.core.events import Failed, FinishReason, TokenLogprob, Usage
from tokenwire.core.wire import Stamp, escape_breaks
from tokenwire.plugins.protocols.responses.call import ResponsesCall
from tokenwire.plugins.protocols.responses.ids import response_id
from tokenwire.plugins.protocols.responses.tool_search import CALL, value_of

__all__ = (
    "INCOMPLETE",
    "STATUSES",
    "Envelope",
    "Item",
    "Status",
    "error_field",
    "item_json",
    "logprobs_field",
    "usage_field",
)

Status: TypeAlias = Literal[
    "queued", "in_progress", "completed", "incomplete", "failed", "cancelled"
]
Json: TypeAlias = dict[str, object]

FLOOR: Final = -9999.0
"""What stands for a log probability that JSON cannot hold, or that is below it."""

STATUSES: Final[dict[FinishReason, Status]] = {
    "stop": "completed",
    "stop_sequence": "completed",
    "tool_calls": "completed",
    "length": "incomplete",
    "context_length": "incomplete",
    "cancelled": "cancelled",
}
INCOMPLETE: Final = {"reason": "max_output_tokens"}

# The codes that the protocol knows, nearest to each kind; `type` says the kind itself.
CODES: Final[dict[ErrorKind, str]] = {
    ErrorKind.INVALID_REQUEST: "invalid_prompt",
    ErrorKind.CONTEXT_LENGTH: "invalid_prompt",
    ErrorKind.RATE_LIMITED: "rate_limit_exceeded",
}

# Fields of a response that say what the request said, with what stands for those it did not name.
ECHOED: Final[dict[str, bytes]] = {
    "background": b"false",
    "max_output_tokens": b"null",
    "max_tool_calls": b"null",
    "metadata": b"{}",
    "parallel_tool_calls": b"true",
    "previous_response_id": b"null",
    "prompt_cache_key": b"null",
    "reasoning": b'{"effort":null,"summary":null}',
    "safety_identifier": b"null",
    "store": b"true",
    "temperature": b"null",
    "text": b'{"format":{"type":"text"}}',
    "tool_choice": b'"auto"',
    "tools": b"[]",
    "top_logprobs": b"0",
    "top_p": b"null",
    "truncation": b'"disabled"',
    "user": b"null",
}

_json: Final = msgspec.json.Encoder().encode


class Item(Struct):
    """One item of the output while it grows; `texts` are joined at its end."""

    kind: str
    id: str
    name: str = ""
    namespace: str | None = None
    call_id: str = ""
    texts: list[str] = []
    logprobs: list[Json] = []
    sealed: str | None = None
    is_summary: bool = False
    status: str = "in_progress"

    @property
    def text(self) -> str:
        if len(self.texts) > 1:
            self.texts = ["".join(self.texts)]
        return self.texts[0] if self.texts else ""


def item_json(item: Item) -> Json:
    """As it stands in `output`, and in the events of its beginning and end."""
    body: Json = {"id": item.id, "type": item.kind, "status": item.status}
    match item.kind:
        case "message":
            body["role"] = "assistant"
            is_new = item.status == "in_progress" and not item.texts
            body["content"] = [] if is_new else [text_part(item)]
        case "reasoning":
            text = item.text
            shown = [{"type": "summary_text", "text": text}] if item.is_summary and text else []
            body["summary"] = shown
            if not item.is_summary:
                body["content"] = [{"type": "reasoning_text", "text": text}] if text else []
            if item.sealed is not None:
                body["encrypted_content"] = item.sealed
        case "function_call":
            body |= {"call_id": item.call_id, "name": item.name, "arguments": item.text}
        case "custom_tool_call":
            body |= {"call_id": item.call_id, "name": item.name, "input": item.text}
        case kind if kind == CALL:
            body |= {"call_id": item.call_id, "execution": "client"}
            body["arguments"] = value_of(item.text)
    if item.namespace is not None:
        body["namespace"] = item.namespace
    return body


def text_part(item: Item) -> Json:
    return {
        "type": "output_text",
        "text": item.text,
        "annotations": [],
        "logprobs": item.logprobs,
    }


def logprobs_field(tokens: Sequence[TokenLogprob]) -> list[Json]:
    return [
        _token(token) | {"top_logprobs": [_token(other) for other in token.top]} for token in tokens
    ]


def _token(token: TokenLogprob) -> Json:
    value = token.logprob
    if math.isnan(value) or value < FLOOR:
        value = FLOOR
    return {"token": token.text, "logprob": value, "bytes": list(token.bytes)}


def usage_field(usage: Usage) -> Json:
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {
            "cached_tokens": usage.cached_tokens,
            "cache_write_tokens": usage.cache_creation_tokens,
        },
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }


def error_field(failed: Failed) -> Json:
    code = CODES.get(failed.kind, "server_error")
    return {"code": code, "message": failed.message, "type": failed.kind.word}


class Envelope:
    """What all bodies of one response share, encoded once."""

    __slots__ = ("_head", "_tail", "id")

    def __init__(self, call: Call, stamp: Stamp) -> None:
        self.id = response_id(stamp)
        given = call.given if isinstance(call, ResponsesCall) else {}
        head = {"id": self.id, "object": "response", "created_at": int(stamp.time)}
        self._head = _json(head)[:-1] + b',"model":' + _json(call.model)
        fields = dict(ECHOED)
        fields |= {key: given[key] for key in ECHOED if given.get(key, b"null") != b"null"}
        instructions = call.instructions if isinstance(call, ResponsesCall) else None
        conversation = call.keeping.conversation if call.keeping is not None else None
        fields["instructions"] = _json(instructions)
        fields["service_tier"] = _json(_tier(given.get("service_tier")))
        if conversation is not None:
            fields["conversation"] = _json({"id": conversation})
        for name in ("prompt_cache_retention",):
            if name in given:
                fields[name] = given[name]
        self._tail = b"".join(b',"%b":%b' % (key.encode(), fields[key]) for key in sorted(fields))

    def body(
        self,
        status: Status,
        items: Sequence[Json | msgspec.Raw] = (),
        *,
        usage: Usage | None = None,
        failed: Failed | None = None,
    ) -> bytes:
        """The response as an object; without line breaks."""
        shown: Json = {
            "status": status,
            "error": None if failed is None else error_field(failed),
            "incomplete_details": INCOMPLETE if status == "incomplete" else None,
            "output": items,
            "usage": None if usage is None else usage_field(usage),
        }
        data = self._head + b"," + _json(shown)[1:-1] + self._tail + b"}"
        return escape_breaks(data)


def _tier(given: bytes | None) -> str:
    """Which one it is served in: `auto` is no tier."""
    tier = "" if given is None else str(msgspec.json.decode(given) or "")
    return "default" if tier in ("", "auto") else tier
