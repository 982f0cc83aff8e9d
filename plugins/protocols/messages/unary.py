"""Events to one Messages body: the fold of the stream. Knows no request beyond its model."""

from __future__ import annotations

from typing import Final, TypeAlias, final

import msgspec

from tokenwire.core.call import Call
from tokenwire.core.errors import CodecStateError
from tokenwire.core.events import (
    Event,
    Failed,
    Finished,
    Logprobs,
    Order,
    PartDelta,
    PartEnd,
    PartStart,
    Started,
    Usage,
)
from tokenwire.core.fold import Answer, Part, fold
from tokenwire.core.ports.codec import Reply
from tokenwire.core.signing import Keyring, TextDigest
from tokenwire.core.wire import Stamp
from tokenwire.plugins.protocols.messages import reply_schema as wire
from tokenwire.plugins.protocols.messages import shapes
from tokenwire.plugins.protocols.messages.call import Shown
from tokenwire.plugins.protocols.messages.errors import envelope
from tokenwire.plugins.protocols.messages.hidden import hidden_block, sealed, shown
from tokenwire.plugins.protocols.messages.signature import sign

__all__ = ("UnaryReply",)

Kept: TypeAlias = Started | PartStart | PartDelta | PartEnd | Finished | Usage

_json: Final = msgspec.json.Encoder().encode


@final
class UnaryReply(Reply):
    """One JSON body, with the last event."""

    content_type = "application/json"

    __slots__ = ("_events", "_keys", "_model", "_order", "_shown", "_stamp", "_tenant")

    def __init__(self, call: Call, stamp: Stamp, keys: Keyring) -> None:
        self._model = call.model
        self._shown: Shown = shown(call)
        self._tenant = call.identity.tenant
        self._stamp = stamp
        self._keys = keys
        self._order = Order()
        self._events: list[Kept] = []

    def push(self, event: Event) -> bytes:
        if isinstance(event, PartDelta) and event.choice != 0:
            raise CodecStateError(f"{event!r} in an answer with one choice")
        self._order.step(event)
        if isinstance(event, Failed):
            return envelope(event.kind, event.message, self._stamp.id)
        if isinstance(event, Logprobs):
            return b""
        self._events.append(event)
        if not isinstance(event, Usage):
            return b""
        return _json(self._body(fold(self._events), event))

    def _body(self, answer: Answer, usage: Usage) -> wire.Message:
        choice, started = answer.choices[0], answer.started
        assert choice.reason is not None
        assert started is not None
        blocks: list[wire.Block] = []
        tools = 0
        for part in choice.parts:
            blocks.append(self._block(part, len(blocks), tools, started.fingerprint))
            tools += part.kind == "tool_call"
        stop = shapes.stop_delta(Finished(0, choice.reason, choice.matched))
        total = shapes.total_usage(usage)
        return shapes.message(self._stamp, self._model, total, content=blocks, stop=stop)

    def _block(self, part: Part, index: int, tools: int, fingerprint: str) -> wire.Block:
        match part.kind:
            case "text":
                return wire.TextBlock(part.text)
            case "reasoning" if self._shown != "whole":
                data = sealed(self._keys, part.text, fingerprint, self._tenant)
                return hidden_block(self._shown, data)
            case "reasoning":
                digest = TextDigest()
                digest.push(part.text)
                signature = sign(self._keys, fingerprint, digest.digest(), index)
                return wire.ThinkingBlock(part.text, signature)
            case "tool_call":
                call_id = shapes.tool_id(part.call_id, self._stamp, tools)
                given = shapes.tool_input(part.text, complete=part.complete)
                return wire.ToolUseBlock(call_id, part.name, given)

    def save(self) -> object:
        """All of the answer so far: a unary body must repeat it."""
        return msgspec.to_builtins(_joined(self._events), builtin_types=(bytes,))

    def restore(self, state: object) -> None:
        """Raises msgspec.ValidationError for what is no answer so far."""
        for event in msgspec.convert(state, list[Kept]):
            self.push(event)


def _joined(events: list[Kept]) -> list[Kept]:
    """The same events with neighbouring deltas as one."""
    joined: list[Kept] = []
    texts: list[str] = []
    for event in events:
        if isinstance(event, PartDelta):
            texts.append(event.text)
            continue
        if texts:
            joined.append(PartDelta(0, "".join(texts)))
            texts = []
        joined.append(event)
    if texts:
        joined.append(PartDelta(0, "".join(texts)))
    return joined
