"""Replies: events to a Responses stream, numbered from 0, or to one body. Knows no order of parts.

Order on the wire: response.created, response.in_progress; each item as output_item.added, its part,
deltas, their end, output_item.done, one open at a time with rising index; then one of
response.completed, response.incomplete and response.failed, with the whole response. An answer in
the background begins with response.created and response.queued.
"""

from __future__ import annotations

from typing import Final, final

import msgspec

from tokenwire.core.call import Call
from tokenwire.core.events import Event, Failed, PartDelta
from tokenwire.core.signing import Keyring
from tokenwire.core.wire import Stamp, escape_breaks, json_text
from tokenwire.plugins.protocols.responses.machine import Machine
from tokenwire.plugins.protocols.responses.shapes import (
    Item,
    Json,
    error_field,
    item_json,
    text_part,
)

__all__ = ("StreamReply", "UnaryReply")

_json: Final = msgspec.json.Encoder().encode

KEEPALIVE: Final = b": keep-alive\n\n"
DELTAS: Final = {
    "message": b"response.output_text.delta",
    "reasoning": b"response.reasoning_text.delta",
    "summary": b"response.reasoning_summary_text.delta",
    "function_call": b"response.function_call_arguments.delta",
    "custom_tool_call": b"response.custom_tool_call_input.delta",
}
ENDS: Final = {
    "completed": b"response.completed",
    "incomplete": b"response.incomplete",
    "failed": b"response.failed",
    "cancelled": b"response.incomplete",
}
"""Why not "cancelled": the protocol has no event of that name; the response says its status."""


@final
class UnaryReply(Machine):
    """One JSON body, with the last event."""

    content_type = "application/json"

    def begin(self) -> bytes:
        return b""

    def _begun(self) -> bytes:
        return b""

    def _added(self, item: Item, index: int) -> bytes:
        return b""

    def _delta(self, item: Item, index: int, text: str, logprobs: list[Json]) -> bytes:
        return b""

    def _ended(self, item: Item, index: int) -> bytes:
        return b""

    def _over(self, body: bytes) -> bytes:
        return body


@final
class StreamReply(Machine):
    """Server-sent events."""

    content_type = "text/event-stream"

    def __init__(self, call: Call, stamp: Stamp, keys: Keyring) -> None:
        super().__init__(call, stamp, keys)
        self._prefix = b""  # Of the open item's deltas; empty where it has none.
        self._suffix = b""

    def push(self, event: Event) -> bytes:
        item = self._item
        if (
            type(event) is PartDelta
            and item is not None
            and self._prefix
            and not self._pending
            and not event.choice
        ):
            # Why: nine events in ten, and always legal while an item is open.
            text = event.text
            item.texts.append(text)
            number = self._number
            self._number = number + 1
            data = _json(text) if text.isascii() else json_text(text)
            return self._prefix + data + self._suffix % number
        if isinstance(event, Failed) and not (self._is_begun or self._order.save()[0] == "open"):
            # Why not as a response: none has begun, and there is nothing to say of it.
            self._order.step(event)
            error = error_field(event) | {"type": "error", "param": None}
            return self._event(b"error", error)
        return super().push(event)

    def keepalive(self) -> bytes:
        return b"" if self._order.is_over else KEEPALIVE

    def begin(self) -> bytes:
        self._is_begun = True
        return self._whole(b"response.created") + self._whole(b"response.queued")

    def _begun(self) -> bytes:
        created = b"" if self._is_begun else self._whole(b"response.created")
        return created + self._whole(b"response.in_progress")

    def _added(self, item: Item, index: int) -> bytes:
        data = self._event(
            b"response.output_item.added", {"output_index": index, "item": item_json(item)}
        )
        where = self._where(item, index)
        match item.kind:
            case "message":
                part: Json = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
                data += self._event(b"response.content_part.added", where | {"part": part})
            case "reasoning" if item.is_summary:
                part = {"type": "summary_text", "text": ""}
                name = b"response.reasoning_summary_part.added"
                data += self._event(name, where | {"part": part})
            case "reasoning":
                part = {"type": "reasoning_text", "text": ""}
                data += self._event(b"response.content_part.added", where | {"part": part})
        kind = "summary" if item.is_summary else item.kind
        if kind not in DELTAS:
            self._prefix = b""
            return data
        name = DELTAS[kind]
        head = _json({"type": name.decode(), **where})[:-1]
        self._prefix = b"event: " + name + b"\ndata: " + head + b',"delta":'
        logprobs = b',"logprobs":[]' if item.kind == "message" else b""
        self._suffix = logprobs + b',"sequence_number":%d}\n\n'
        return data

    def _where(self, item: Item, index: int) -> Json:
        where: Json = {"item_id": item.id, "output_index": index}
        if item.is_summary:
            where["summary_index"] = 0
        elif item.kind in ("message", "reasoning"):
            where["content_index"] = 0
        return where

    def _delta(self, item: Item, index: int, text: str, logprobs: list[Json]) -> bytes:
        if not self._prefix:
            return b""
        if not logprobs or item.kind != "message":
            number = self._number
            self._number = number + 1
            return self._prefix + json_text(text) + self._suffix % number
        fields = self._where(item, index) | {"delta": text, "logprobs": logprobs}
        return self._event(DELTAS["message"], fields)

    def _ended(self, item: Item, index: int) -> bytes:
        where = self._where(item, index)
        data = b""
        match item.kind:
            case "message":
                fields = where | {"text": item.text, "logprobs": item.logprobs}
                data = self._event(b"response.output_text.done", fields)
                fields = where | {"part": text_part(item)}
                data += self._event(b"response.content_part.done", fields)
            case "reasoning" if item.is_summary:
                fields = where | {"text": item.text}
                data = self._event(b"response.reasoning_summary_text.done", fields)
                fields = where | {"part": {"type": "summary_text", "text": item.text}}
                data += self._event(b"response.reasoning_summary_part.done", fields)
            case "reasoning":
                fields = where | {"text": item.text}
                data = self._event(b"response.reasoning_text.done", fields)
                fields = where | {"part": {"type": "reasoning_text", "text": item.text}}
                data += self._event(b"response.content_part.done", fields)
            case "function_call":
                fields = where | {"arguments": item.text, "name": item.name}
                data = self._event(b"response.function_call_arguments.done", fields)
            case "custom_tool_call":
                fields = where | {"input": item.text}
                data = self._event(b"response.custom_tool_call_input.done", fields)
        done = {"output_index": index, "item": item_json(item)}
        return data + self._event(b"response.output_item.done", done)

    def _over(self, body: bytes) -> bytes:
        return self._whole(ENDS[self._status], body)

    def _whole(self, name: bytes, body: bytes | None = None) -> bytes:
        return self._event(name, {"response": msgspec.Raw(body or self.body())})

    def _event(self, name: bytes, fields: Json) -> bytes:
        number = self._number
        self._number = number + 1
        body = escape_breaks(_json({"type": name.decode(), **fields, "sequence_number": number}))
        return b"event: " + name + b"\ndata: " + body + b"\n\n"
