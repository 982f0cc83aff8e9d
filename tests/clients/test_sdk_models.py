"""What we send is what the official SDKs' models say: no value that they do not know, and no field
that they do not have but those that our pages document."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
import pytest
from anthropic.types import Message, RawMessageStreamEvent
from msgspec import Struct
from msgspec.structs import replace
from openai.types import Completion
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import BaseModel, TypeAdapter

from tokenwire.core.call import Call, Output
from tokenwire.core.events import Event
from tokenwire.core.host import Host, lone_services
from tokenwire.core.ports.codec import Codec
from tokenwire.core.testing.codec_probe import STAMP, shape_for
from tokenwire.core.testing.strategies import event_streams, sample
from tokenwire.core.wire import HttpRequest, SseReader

SAID: Final = [{"role": "user", "content": "a"}]


class Wire(Struct, frozen=True):
    """A protocol as its SDK has it: the smallest request, the models of a whole reply and of an
    event of a stream, and the fields beside that we document."""

    path: str
    body: dict[str, Any]
    whole: Any
    event: Any
    beside: frozenset[str] = frozenset()


WIRES: Final = {
    "chat_completions": Wire(
        "/v1/chat/completions",
        {"model": "m", "messages": SAID},
        ChatCompletion,
        ChatCompletionChunk,
        frozenset({"reasoning_content", "stop_reason"}),
    ),
    "completions": Wire(
        "/v1/completions",
        {"model": "m", "prompt": "a"},
        Completion,
        Completion,
        frozenset({"stop_reason"}),
    ),
    "messages": Wire(
        "/v1/messages",
        {"model": "m", "messages": SAID, "max_tokens": 9},
        Message,
        RawMessageStreamEvent,
        frozenset({"cache_creation"}),
    ),
    "responses": Wire(
        "/v1/responses",
        {"model": "m", "input": "a"},
        Response,
        ResponseStreamEvent,
        frozenset({"bytes", "name", "status", "store"}),
    ),
}


def extras(value: Any) -> Iterator[str]:
    """Names of the fields that models do not have, at any depth."""
    if isinstance(value, BaseModel):
        yield from value.model_extra or ()
        for name in type(value).model_fields:
            yield from extras(getattr(value, name, None))
    elif isinstance(value, list):
        for inner in value:
            yield from extras(inner)
    elif isinstance(value, dict):
        for inner in value.values():
            yield from extras(inner)


def checked(model: Any, wire: Wire) -> Callable[[str | bytes], None]:
    adapter: TypeAdapter[Any] = TypeAdapter(model)

    def check(data: str | bytes) -> None:
        read = adapter.validate_json(data, strict=True)
        beside = set(extras(read)) - wire.beside
        assert not beside, f"{beside} in {data!r}"

    return check


def made(codec: Codec, wire: Wire, *, stream: bool) -> tuple[Call, list[list[Event]]]:
    """A call, and answers with everything in them that the wire carries."""
    shape = shape_for(codec.losses)
    if stream and codec.name == "chat_completions":
        shape = replace(shape, custom=False)  # Which the SDK has in whole replies alone.
    asked = codec.decode(HttpRequest("POST", wire.path, body=msgspec.json.encode(wire.body)))
    assert isinstance(asked, Call)
    output = Output(shape.choices, logprobs=2 if shape.logprobs else None, stream=stream)
    return replace(asked, output=output), sample(event_streams(shape), 30)


def unended(data: str) -> bytes:
    """A chunk of Completions with an end. Why: the SDK's model is that of whole replies, and no
    server ends each chunk."""
    chunk = msgspec.json.decode(data)
    for choice in chunk["choices"]:
        choice["finish_reason"] = choice["finish_reason"] or "stop"
    return msgspec.json.encode(chunk)


@pytest.fixture(scope="module")
def codecs() -> dict[str, Codec]:
    host = Host()
    built = {name: host.codecs.build(name, {}, lone_services()) for name in WIRES}
    return {name: codec for name, codec in built.items() if isinstance(codec, Codec)}


@pytest.mark.parametrize("name", WIRES)
def test_whole_replies(codecs: dict[str, Codec], name: str) -> None:
    codec, wire = codecs[name], WIRES[name]
    check = checked(wire.whole, wire)
    call, answers = made(codec, wire, stream=False)
    for events in answers:
        reply = codec.reply(call, STAMP)
        check(b"".join(reply.push(event) for event in events))


@pytest.mark.parametrize("name", WIRES)
def test_streams(codecs: dict[str, Codec], name: str) -> None:
    codec, wire = codecs[name], WIRES[name]
    check = checked(wire.event, wire)
    call, answers = made(codec, wire, stream=True)
    for events in answers:
        reply = codec.reply(call, STAMP)
        lines = SseReader()
        for event in events:
            for message in lines.push(reply.push(event)):
                if message.data != "[DONE]":
                    check(unended(message.data) if name == "completions" else message.data)


def test_a_field_of_no_model_is_found() -> None:
    wire = WIRES["messages"]
    data = msgspec.json.encode({"type": "content_block_stop", "index": 0, "odd": 1})
    with pytest.raises(AssertionError, match="odd"):
        checked(wire.event, wire)(data)
