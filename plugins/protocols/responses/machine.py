"""What a reply says, without its bytes: events to items of the output. Both replies run it.

Rules that live here, so that a stream adds up to the unary body:
- Each part is an item of its own, in the order in which they came: reasoning, message, calls.
- The arguments of a call that ended without any are "{}"; of one that was cut off, what there is,
  and its status is incomplete. So is that of the last item where the answer was cut off.
- `logprobs` has the tokens of messages only.
- Where the request asks for a summary of the reasoning, the reasoning itself is sent as one: models
  write none, and clients that ask for one show nothing else.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec import Raw, Struct

from tokenwire.core.call import Call
from tokenwire.core.errors import ErrorKind
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
from tokenwire.core.ports.codec import KeptReply
from tokenwire.core.sealing import REASONING, bound_to, seal
from tokenwire.core.signing import Keyring
from tokenwire.core.stored import StoredAnswer, StoredItem
from tokenwire.core.wire import Stamp, escape_breaks
from tokenwire.plugins.protocols.responses.call import ResponsesCall
from tokenwire.plugins.protocols.responses.ids import call_id, item_id
from tokenwire.plugins.protocols.responses.kept_input import kept_input
from tokenwire.plugins.protocols.responses.shapes import (
    STATUSES,
    Envelope,
    Item,
    Json,
    Status,
    item_json,
    logprobs_field,
)
from tokenwire.plugins.protocols.responses.tool_search import CALL, SEARCH

__all__ = ("Machine",)

CANCELLED: Final = Failed(ErrorKind.CLIENT_CLOSED, "the answer was cancelled")

_json: Final = msgspec.json.Encoder().encode


class State(Struct, frozen=True, array_like=True):
    """What earlier events do not tell, since their deltas may be cut otherwise."""

    number: int
    is_begun: bool


class HasId(Struct):
    """Of an item."""

    id: str


class Machine(KeptReply):
    """Checks the order, keeps the items, and calls the methods below with what is to be said."""

    repeats = True

    def __init__(self, call: Call, stamp: Stamp, keys: Keyring) -> None:
        self._call = call
        self._stamp = stamp
        self._keys = keys
        self._order = Order()
        self._envelope = Envelope(call, stamp)
        self.id = self._envelope.id
        self._seals = isinstance(call, ResponsesCall) and call.seals
        self._summarises = isinstance(call, ResponsesCall) and call.summarises
        self._namespaces = call.namespaces if isinstance(call, ResponsesCall) else {}
        self._searches = isinstance(call, ResponsesCall) and call.searches
        self._done: list[Raw] = []  # Items that have ended, as JSON.
        self._item: Item | None = None
        self._status: Status = "queued"
        self._usage: Usage | None = None
        self._failed: Failed | None = None
        self._fingerprint = ""
        self._pending: list[Json] = []  # Logprobs of the next delta.
        self._calls = 0
        self._last: Item | None = None  # Kept until the end is known: it may be incomplete.
        self._number = 0  # Of the next event of a stream.
        self._is_begun = False

    # --- what is said ----------------------------------------------------------------------------

    @abstractmethod
    def _begun(self) -> bytes: ...

    @abstractmethod
    def _added(self, item: Item, index: int) -> bytes: ...

    @abstractmethod
    def _delta(self, item: Item, index: int, text: str, logprobs: list[Json]) -> bytes: ...

    @abstractmethod
    def _ended(self, item: Item, index: int) -> bytes: ...

    @abstractmethod
    def _over(self, body: bytes) -> bytes: ...

    # --- events ----------------------------------------------------------------------------------

    def push(self, event: Event) -> bytes:
        self._order.step(event)
        match event:
            case PartDelta(_, text):
                return self._text(text)
            case PartStart():
                return self._start(event)
            case PartEnd(_, complete):
                return self._close("completed" if complete else "incomplete")
            case Logprobs(_, tokens):
                self._pending += logprobs_field(tokens)
                return b""
            case Started(fingerprint=fingerprint):
                self._fingerprint = fingerprint
                self._status = "in_progress"
                return self._begun()
            case Finished():
                return self._finish(event)
            case Usage():
                self._usage = event
                return self._over(self.body())
            case Failed():
                self._failed = event
                return self._break("failed")

    def cancel(self) -> bytes:
        self._order.step(CANCELLED)
        return self._break("cancelled")

    def _start(self, start: PartStart) -> bytes:
        data = self._settle()
        index = len(self._done)
        match start.kind:
            case "text":
                kind = "message"
            case "reasoning":
                kind = "reasoning"
            case "tool_call" if self._searches and start.name == SEARCH:
                kind = CALL
            case "tool_call":
                kind = "custom_tool_call" if start.custom else "function_call"
        item = Item(kind, item_id(self._stamp, kind, index), name=start.name)
        if start.name in self._namespaces:
            item.namespace, item.name = self._namespaces[start.name]
        item.is_summary = kind == "reasoning" and self._summarises
        if start.kind == "tool_call":
            item.call_id = start.call_id or call_id(self._stamp, self._calls)
            self._calls += 1
        self._item = item
        return data + self._added(item, index)

    def _text(self, text: str) -> bytes:
        item = self._item
        assert item is not None  # The order was checked.
        item.texts.append(text)
        logprobs, self._pending = self._pending, []
        if item.kind == "message":
            item.logprobs += logprobs
        return self._delta(item, len(self._done), text, logprobs)

    def _close(self, status: str) -> bytes:
        item, self._item = self._item, None
        assert item is not None
        data = b""
        if item.kind == "function_call" and not item.text and status == "completed":
            item.texts = ["{}"]
            data = self._delta(item, len(self._done), "{}", [])
        item.status = status
        if item.kind == "reasoning" and self._seals:
            aad = bound_to(self._fingerprint, self._call.identity.tenant)
            item.sealed = seal(self._keys, REASONING, item.text.encode(), aad)
        self._last = item
        if item.call_id:
            return data + self._settle()
        return data  # Why no more yet: the answer's end may make it an incomplete one.

    def _settle(self) -> bytes:
        """Say the end of the item that ended last."""
        item, self._last = self._last, None
        if item is None:
            return b""
        data = self._ended(item, len(self._done))
        self._done.append(Raw(escape_breaks(_json(item_json(item)))))
        return data

    def _finish(self, finished: Finished) -> bytes:
        self._status = STATUSES[finished.reason]
        if self._last is not None and self._status != "completed":
            self._last.status = "incomplete"
        self._pending = []
        return self._settle()

    def _break(self, status: Status) -> bytes:
        """The answer ends here, with what there is."""
        data = b""
        if self._item is not None:
            data = self._close("incomplete")
        self._status = status
        return data + self._settle() + self._over(self.body())

    # --- as it stands ----------------------------------------------------------------------------

    def body(self) -> bytes:
        """The whole response, as far as it is made."""
        items: list[Json | Raw] = [*self._done]
        items += [item_json(item) for item in (self._last, self._item) if item is not None]
        return self._envelope.body(self._status, items, usage=self._usage, failed=self._failed)

    def stored(self) -> StoredAnswer:
        is_over = self._order.is_over
        output = [
            StoredItem(msgspec.json.decode(data, type=HasId).id, bytes(data)) for data in self._done
        ]
        call = self._call
        given = kept_input(call, self._stamp) if isinstance(call, ResponsesCall) else ()
        return StoredAnswer(
            self.id,
            self.body(),
            "over" if is_over else "queued" if self._status == "queued" else "running",
            given,
            tuple(output),
            call.context if isinstance(call, ResponsesCall) else (),
            background=call.keeping is not None and call.keeping.background,
        )

    # --- state -----------------------------------------------------------------------------------

    def save(self) -> object:
        return msgspec.to_builtins(State(self._number, self._is_begun))

    def restore(self, state: object) -> None:
        """Raises msgspec.ValidationError for what is no state of a reply."""
        self._number, self._is_begun = msgspec.structs.astuple(msgspec.convert(state, State))

    def recall(self, events: Iterable[Event]) -> None:
        number, is_begun = self._number, self._is_begun
        for event in events:
            self.push(event)
        self._number, self._is_begun = number, is_begun
