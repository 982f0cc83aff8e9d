"""The protocol port: bytes of one wire format to calls, events back to bytes; and the same turned
round, for those who ask. Pure, synchronous."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import ClassVar, Literal

from tokenwire.core.call import Call, Query, QueryResult
from tokenwire.core.errors import CallError
from tokenwire.core.events import Event, Usage
from tokenwire.core.field_rule import FieldRule
from tokenwire.core.stored import StoredAnswer
from tokenwire.core.wire import HttpReply, HttpRequest, Route, Stamp

__all__ = ("Codec", "CodecClient", "KeptReply", "Reply", "ReplyReader")


class Reply(ABC):
    """One call's answer on its way out; its life is independent of any connection's.

    Laws: the same call, stamp and events give the same bytes; two replies share nothing; an event
    out of `events.ORDER` raises CodecStateError; what a stream adds up to equals the unary body.
    """

    content_type: str
    """Of the whole body: "text/event-stream" for streams of most protocols."""
    repeats: ClassVar[bool] = False
    """A stream that says again at its end what it has sent. `save` leaves that out, and `restore`
    is followed by `recall`."""

    counts: bool = False
    """Whether to say what was used so far, for calls with `output.continuous_usage`."""

    @abstractmethod
    def push(self, event: Event) -> bytes:
        """Bytes to send now; b"" when there are none. A unary reply sends all with the last event.

        `Failed` ends a stream with the protocol's own error event; a unary reply is never given
        one (the flow answers with `Codec.encode_error`).
        """

    def keepalive(self) -> bytes:
        """Bytes that keep an idle stream open and clients skip; b"" where the wire has none."""
        return b""

    def count(self, usage: Usage) -> None:  # noqa: B027
        """What was used so far, before the events of an engine's step, where `counts`."""

    @abstractmethod
    def save(self) -> object:
        """State as msgpack-able builtins, flat in the output's length for a stream."""

    @abstractmethod
    def restore(self, state: object) -> None:
        """Take what `save` gave, in a fresh reply of the same call and stamp."""

    def recall(self, events: Iterable[Event]) -> None:  # noqa: B027
        """After `restore`, where `repeats`: the events before the save, their deltas cut anyhow
        (they are had by decoding the answer's ids again)."""


class KeptReply(Reply):
    """A reply that can be asked for again, and be made while nobody listens.

    Laws: the k-th server-sent event of a stream (from 0) has the number k; `stored` changes nothing
    and may be called at any time.
    """

    id: str

    @abstractmethod
    def begin(self) -> bytes:
        """Before any event, where the answer has to wait in the background: what says so."""

    @abstractmethod
    def cancel(self) -> bytes:
        """The end of an answer that nobody wants any more, whatever is open. The last call."""

    @abstractmethod
    def stored(self) -> StoredAnswer:
        """What is kept of it, as far as it is made."""


class ReplyReader(ABC):
    """One reply on its way in: bytes, cut anyhow, to events.

    Laws: the events of what a `Reply` wrote add up to what it was given, but for the codec's
    `losses`. Raises ReplyError, and nothing else, for what is no reply of the protocol.
    """

    @abstractmethod
    def push(self, data: bytes) -> list[Event]:
        """The events that these bytes complete: for a stream as soon as they are whole."""

    @abstractmethod
    def flush(self) -> list[Event]:
        """What only the end of the bytes completes; for a unary reply, all of it."""


class CodecClient(ABC):
    """The side of a protocol that asks. `tokenwire call` and the conformance kit speak with it."""

    @abstractmethod
    def request(self, call: Call) -> HttpRequest:
        """What `Codec.decode` turns back into `call`, but for what the wire cannot say."""

    @abstractmethod
    def reader(self, call: Call) -> ReplyReader:
        """For the reply to `call`. That of a unary call also reads an error's body: to `Failed`."""


class Codec(ABC):
    """One protocol. One object a process, without state of its own.

    Laws: no clock, loop, socket, randomness, environment (nor the imports that bring them); decode
    raises nothing but RequestError, whatever the bytes; it never changes what it was given.
    """

    name: ClassVar[str]
    routes: ClassVar[tuple[Route, ...]]
    losses: ClassVar[frozenset[str]] = frozenset()
    """What of an answer its replies cannot say: names of `answer_losses.ANSWER_LOSSES`."""
    call_losses: ClassVar[frozenset[str]] = frozenset()
    """What of a call its requests cannot say: names of `call_losses.CALL_LOSSES`."""
    error_body: ClassVar[type | None] = None
    """The Struct that an error's body is, for /openapi.json; None: an object with `error`."""
    fields: ClassVar[tuple[FieldRule, ...]] = ()
    """What becomes of each field of a request: the protocol's capability table, all of it."""

    task: ClassVar[Literal["generate", "embed"] | None] = "generate"
    """What its requests ask of an engine; None: nothing."""
    words: ClassVar[Mapping[str, str]] = {}
    """What of a call an engine could not use -> the name of its field on this wire."""

    def spelled(self, name: str) -> str:
        """The name on this wire of what is called `name` in a call."""
        field, dot, key = name.partition(".")
        if field == "template_args" and name not in self.words:
            return f"{self.words.get(field, field)}{dot}{key}"
        return self.words.get(name, name)

    @abstractmethod
    def decode(self, request: HttpRequest) -> Call | Query:
        """The request's meaning; raises RequestError that names field and reason."""

    @abstractmethod
    def reply(self, call: Call, stamp: Stamp) -> Reply:
        """A fresh reply: streaming or unary by `call.output.stream`."""

    @abstractmethod
    def encode_error(self, error: CallError, request_id: str) -> HttpReply:
        """The protocol's own error body, with a 4xx or 5xx status and `wire.retry_after(error)`.

        Headers with the request's id are added by whoever sends it.
        """

    def answer(self, query: Query, result: QueryResult) -> HttpReply:
        """Only for codecs whose decode gives queries."""
        raise NotImplementedError(f"codec {self.name} gives no queries")

    def client(self) -> CodecClient | None:
        """The side that asks, where the plugin has one."""
        return None
