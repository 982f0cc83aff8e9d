"""What the tests of this codec share: a codec with a fixed key, a stamp, short ways to decode."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec
import pytest

from tokenwire.core.call import Call, Count, Output
from tokenwire.core.dialogue import Dialogue
from tokenwire.core.events import Event
from tokenwire.core.signing import Keyring
from tokenwire.core.wire import HttpRequest, SseReader, Stamp
from tokenwire.plugins.protocols.messages.codec import COUNT_PATH, MESSAGES_PATH, MessagesCodec

Decode = Callable[..., Call]
Encode = Callable[..., bytes]


@pytest.fixture(scope="session")
def codec() -> MessagesCodec:
    return MessagesCodec(Keyring([b"a key of the tests' own, 32 bytes"]))


@pytest.fixture(scope="session")
def stamp() -> Stamp:
    return Stamp(id="req_1", time=1.0, entropy=bytes(range(16)))


@pytest.fixture(scope="session")
def decode(codec: MessagesCodec) -> Decode:
    """Fields over a smallest request -> Call; `count=True` by the other route."""

    def decode(
        body: bytes | None = None,
        *,
        count: bool = False,
        headers: Mapping[str, str] | None = None,
        without: Iterable[str] = (),
        **fields: object,
    ) -> Call:
        if body is None:
            smallest = {
                "model": "m",
                "max_tokens": 256,
                "messages": [{"role": "user", "content": "hi"}],
            }
            merged = {**smallest, **fields}
            body = msgspec.json.encode({k: v for k, v in merged.items() if k not in without})
        path = COUNT_PATH if count else MESSAGES_PATH
        asked = codec.decode(HttpRequest("POST", path, headers=headers or {}, body=body))
        return asked.call if isinstance(asked, Count) else asked

    return decode


@pytest.fixture(scope="session")
def encode(codec: MessagesCodec, stamp: Stamp) -> Encode:
    def encode(events: Iterable[Event], *, stream: bool = True) -> bytes:
        call = Call("m", Dialogue(()), output=Output(stream=stream))
        reply = codec.reply(call, stamp)
        return b"".join(reply.push(event) for event in events)

    return encode


@pytest.fixture(scope="session")
def shape() -> Callable[[bytes], list[str]]:
    """A stream as short words: "content_block_start:text:0", deltas of one kind once."""

    def shape(data: bytes) -> list[str]:
        words: list[str] = []
        for message in SseReader().push(data):
            value = msgspec.json.decode(message.data)
            assert value["type"] == message.event
            word = message.event
            if "content_block" in value:
                word += f":{value['content_block']['type']}"
            if "delta" in value:
                word += f":{value['delta'].get('type') or value['delta']['stop_reason']}"
            if "index" in value:
                word += f":{value['index']}"
            if not words or words[-1] != word:
                words.append(word)
        return words

    return shape
