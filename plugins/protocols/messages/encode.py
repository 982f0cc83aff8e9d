"""Events to a Messages stream, event by event. Knows no request beyond its model.

Order on the wire: message_start; each block as content_block_start, deltas, content_block_stop, one
open at a time with rising index; message_delta with stop reason and totals; message_stop.
"""

from __future__ import annotations

from typing import Final, final

import msgspec
from msgspec import Struct

from tokenwire.core.call import Call
from tokenwire.core.errors import CodecStateError
from tokenwire.core.events import (
    Event,
    Failed,
    Finished,
    FinishReason,
    Logprobs,
    Order,
    PartDelta,
    PartEnd,
    PartKind,
    PartStart,
    Started,
    Usage,
)
from tokenwire.core.ports.codec import Reply
from tokenwire.core.signing import Keyring, TextDigest
from tokenwire.core.wire import Stamp, escape_breaks, json_text, sse
from tokenwire.plugins.protocols.messages import reply_schema as wire
from tokenwire.plugins.protocols.messages import shapes
from tokenwire.plugins.protocols.messages.call import Shown
from tokenwire.plugins.protocols.messages.errors import envelope
from tokenwire.plugins.protocols.messages.hidden import hidden_block, sealed, shown
from tokenwire.plugins.protocols.messages.input_json import InputJson, InputState
from tokenwire.plugins.protocols.messages.signature import sign

__all__ = ("StreamReply",)

_json: Final = msgspec.json.Encoder().encode
DELTA_END: Final = b"}}\n\n"
BATCH: Final = 32
PING: Final = sse(_json(wire.Ping()), b"ping")
COMMENT: Final = b": keep-alive\n\n"
STOP: Final = sse(_json(wire.MessageStop()), b"message_stop")
DELTA_FIELDS: Final[dict[PartKind, bytes]] = {
    "text": b'"text_delta","text":',
    "reasoning": b'"thinking_delta","thinking":',
    "tool_call": b'"input_json_delta","partial_json":',
}


class State(Struct, frozen=True, array_like=True):
    """What a stream must remember; flat in the answer's length."""

    life: str
    choice: str
    index: int
    tools: int
    kind: PartKind | None
    has_delta: bool
    fingerprint: str
    digest: tuple[bytes, bytes, int] | None
    reason: FinishReason | None
    matched: str | None
    hidden: str | None = None
    """Thinking so far that is to be sealed: it grows with the thinking, since no prefix of a sealed
    text can be sealed by itself."""
    input: InputState | None = None
    """Of the open call's arguments."""


@final
class StreamReply(Reply):
    """Server-sent events."""

    content_type = "text/event-stream"

    __slots__ = (
        "_digest",
        "_end",
        "_fingerprint",
        "_has_delta",
        "_hidden",
        "_index",
        "_input",
        "_keys",
        "_kind",
        "_model",
        "_order",
        "_prefix",
        "_shown",
        "_stamp",
        "_tenant",
        "_tools",
        "_unread",
    )

    def __init__(self, call: Call, stamp: Stamp, keys: Keyring) -> None:
        self._model = call.model
        self._shown: Shown = shown(call)
        self._tenant = call.identity.tenant
        self._hidden: list[str] | None = None  # Thinking of the open block, to be sealed.
        self._stamp = stamp
        self._keys = keys
        self._order = Order()
        self._fingerprint = ""
        self._index = 0
        self._tools = 0
        self._kind: PartKind | None = None  # Of the open block.
        self._prefix = b""  # Of its deltas; empty when none is open.
        self._input: InputJson | None = None  # Of the open call.
        self._has_delta = False
        self._digest: TextDigest | None = None
        self._unread: list[str] = []  # Thoughts that the digest has not seen yet.
        self._end: Finished | None = None

    def push(self, event: Event) -> bytes:
        if type(event) is PartDelta and self._prefix and event.choice == 0:
            # Why: nine events in ten, and always legal while a block is open.
            text = event.text
            if self._input is not None:
                text = self._input.push(text)
                if not text:
                    return b""
                self._has_delta = True
            elif self._digest is not None:
                self._unread.append(text)
                if len(self._unread) >= BATCH:
                    self._read_thoughts()
            data = _json(text) if text.isascii() else json_text(text)
            return self._prefix + data + DELTA_END
        return self._push(event)

    def _say(self, arguments: str) -> bytes:
        """A piece of a call's arguments, if there is any."""
        if not arguments:
            return b""
        self._has_delta = True
        return self._prefix + json_text(arguments) + DELTA_END

    def _push(self, event: Event) -> bytes:
        if isinstance(event, PartDelta):
            if self._hidden is not None and event.choice == 0:
                self._hidden.append(event.text)
                return b""
            raise CodecStateError(f"{event!r} while no part of choice 0 is open")
        self._order.step(event)
        match event:
            case Started():
                self._fingerprint = event.fingerprint
                message = shapes.message(self._stamp, self._model, shapes.usage_at_start(event))
                return _sse(wire.MessageStart(message), b"message_start")
            case PartStart():
                return self._open(event)
            case PartEnd():
                return self._close(event)
            case Finished():
                self._end = event
                return b""
            case Logprobs():
                return b""
            case Usage():
                assert self._end is not None
                delta = wire.MessageDelta(shapes.stop_delta(self._end), shapes.total_usage(event))
                return _sse(delta, b"message_delta") + STOP
            case Failed():
                self._prefix = b""
                data = envelope(event.kind, event.message, self._stamp.id)
                return sse(escape_breaks(data), b"error")

    def _open(self, event: PartStart) -> bytes:
        if event.kind == "reasoning" and self._shown != "whole":
            self._kind, self._hidden = event.kind, []
            return b""
        block: wire.Block
        match event.kind:
            case "text":
                block = wire.TextBlock("")
            case "reasoning":
                block = wire.ThinkingBlock("", "")
                self._digest = TextDigest()
            case "tool_call":
                call_id = shapes.tool_id(event.call_id, self._stamp, self._tools)
                block = wire.ToolUseBlock(call_id, event.name, shapes.NO_INPUT)
                self._tools += 1
                self._input = InputJson()
        self._kind, self._has_delta = event.kind, False
        self._prefix = _delta_prefix(self._index, event.kind)
        return _sse(wire.BlockStart(self._index, block), b"content_block_start")

    def _close(self, part: PartEnd) -> bytes:
        if self._hidden is not None:
            return self._close_hidden(self._hidden)
        last = b""
        if self._digest is not None:
            self._read_thoughts()
            signature = sign(self._keys, self._fingerprint, self._digest.digest(), self._index)
            delta = wire.BlockDelta(self._index, wire.SignatureDelta(signature))
            last = _sse(delta, b"content_block_delta")
        elif self._input is not None:
            last = self._say(self._input.close(complete=part.complete))
            if not self._has_delta:
                # Why: clients join the pieces and read "" as {}, but some wait for a first piece.
                last = self._prefix + b'""' + DELTA_END
            self._input = None
        end = _sse(wire.BlockStop(self._index), b"content_block_stop")
        self._index += 1
        self._kind, self._prefix, self._digest = None, b"", None
        return last + end

    def _close_hidden(self, texts: list[str]) -> bytes:
        """All of the block at once: what it holds is not known before."""
        data = sealed(self._keys, "".join(texts), self._fingerprint, self._tenant)
        block = hidden_block(self._shown, data)
        parts = [_sse(wire.BlockStart(self._index, _without_data(block)), b"content_block_start")]
        if isinstance(block, wire.ThinkingBlock):
            delta = wire.BlockDelta(self._index, wire.SignatureDelta(data))
            parts.append(_sse(delta, b"content_block_delta"))
        parts.append(_sse(wire.BlockStop(self._index), b"content_block_stop"))
        self._index += 1
        self._kind, self._hidden = None, None
        return b"".join(parts)

    def _read_thoughts(self) -> None:
        """Why in batches: a call of the digest costs more than all the rest of a delta."""
        if self._digest is not None and self._unread:
            self._digest.push("".join(self._unread))
            self._unread.clear()

    def keepalive(self) -> bytes:
        life, _ = self._order.save()
        if life == "over":
            return b""
        return PING if life == "open" else COMMENT

    def save(self) -> object:
        self._read_thoughts()
        life, states = self._order.save()
        end = self._end
        state = State(
            life=life,
            choice=states[0],
            index=self._index,
            tools=self._tools,
            kind=self._kind,
            has_delta=self._has_delta,
            fingerprint=self._fingerprint,
            digest=self._digest.save() if self._digest is not None else None,
            reason=end.reason if end is not None else None,
            matched=end.matched if end is not None else None,
            hidden=None if self._hidden is None else "".join(self._hidden),
            input=None if self._input is None else self._input.save(),
        )
        return msgspec.to_builtins(state, builtin_types=(bytes,))

    def restore(self, state: object) -> None:
        """Raises msgspec.ValidationError for what is no stream's state."""
        saved = msgspec.convert(state, State)
        self._order.restore(saved.life, [saved.choice])
        self._index, self._tools = saved.index, saved.tools
        self._kind, self._has_delta = saved.kind, saved.has_delta
        self._fingerprint = saved.fingerprint
        self._prefix = b""
        self._hidden = None if saved.hidden is None else [saved.hidden]
        if saved.kind is not None and saved.life == "open" and self._hidden is None:
            self._prefix = _delta_prefix(saved.index, saved.kind)
        self._input = None if saved.input is None else InputJson(saved.input)
        self._digest = None
        self._unread = []
        if saved.digest is not None:
            self._digest = TextDigest()
            self._digest.restore(*saved.digest)
        self._end = None
        if saved.reason is not None:
            self._end = Finished(0, saved.reason, saved.matched)


def _without_data(block: wire.Block) -> wire.Block:
    """As a stream begins it: a signature comes in a delta."""
    return wire.ThinkingBlock("", "") if isinstance(block, wire.ThinkingBlock) else block


def _sse(event: wire.StreamEvent, name: bytes) -> bytes:
    return sse(escape_breaks(_json(event)), name)


def _delta_prefix(index: int, kind: PartKind) -> bytes:
    return (
        b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,'
        b'"delta":{"type":%b' % (index, DELTA_FIELDS[kind])
    )
