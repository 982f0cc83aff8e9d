"""A third-party protocol: one JSON line in, JSON lines out: tokenwire's own events."""

import msgspec

from tokenwire.core import errors, factory, hookspecs, wire
from tokenwire.core.call import Call, Output
from tokenwire.core.dialogue import Dialogue, Text, Turn
from tokenwire.core.events import Event, Failed, Order
from tokenwire.core.json_body import read_object, to_struct
from tokenwire.core.ports.codec import Codec, Reply


class Ask(msgspec.Struct):
    model: str
    say: str
    stream: bool = False


class NdjsonReply(Reply):  # one per call
    content_type = "application/x-ndjson"

    def __init__(self, call: Call, stamp: wire.Stamp) -> None:
        self._stream, self._order, self._lines = call.output.stream, Order(call.output.n), b""

    def push(self, event: Event) -> bytes:
        self._order.step(event)  # raises CodecStateError
        said = {"type": "failed", "message": event.message} if type(event) is Failed else event
        line = msgspec.json.encode(said) + b"\n"
        self._lines += b"" if self._stream else line  # a unary answer is the whole stream at once
        return line if self._stream else self._lines if self._order.is_over else b""

    def save(self) -> object:
        return [*self._order.save(), self._lines]

    def restore(self, state: object) -> None:
        life, states, self._lines = msgspec.convert(state, tuple[str, list[str], bytes])
        self._order.restore(life, states)


class Ndjson(Codec):  # one per process, stateless
    name = "ndjson"
    routes = (wire.Route("POST", "/ndjson"),)
    losses = frozenset({"logprobs"})

    def decode(self, request: wire.HttpRequest) -> Call:
        ask = to_struct(read_object(request.body), Ask)
        turns = (Turn("user", (Text(ask.say),)),)
        return Call(ask.model, Dialogue(turns), output=Output(stream=ask.stream))

    def reply(self, call: Call, stamp: wire.Stamp) -> Reply:
        return NdjsonReply(call, stamp)

    def encode_error(self, error: errors.CallError, request_id: str) -> wire.HttpReply:
        body = msgspec.json.encode({"error": error.kind.word, "message": error.message})
        return wire.HttpReply(error.status, "application/json", body, wire.retry_after(error))


@hookspecs.impl
def register_codecs() -> list[factory.Factory[Codec]]:
    return [factory.Factory("ndjson", factory.NoSettings, lambda settings, services: Ndjson())]
