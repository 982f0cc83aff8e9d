"""Thinking signatures: ours are told from others', through the codec and back."""

from __future__ import annotations

import msgspec
import pytest

from tokenwire.core.call import Call
from tokenwire.core.dialogue import Dialogue
from tokenwire.core.events import Finished, PartDelta, PartEnd, PartStart, Started, Usage
from tokenwire.core.signing import Keyring
from tokenwire.core.wire import HttpRequest
from tokenwire.plugins.protocols.messages.codec import MessagesCodec

OLD, NEW = b"an old key of the tests, 32 byte", b"a new key of the tests, 32 bytes"
SIGNATURE = "messages[].content[].signature"


def think(codec, stamp, *thoughts, fingerprint="f"):
    events = [Started(1, 0, fingerprint)]
    for thought in thoughts:
        events += [PartStart(0, "reasoning"), PartDelta(0, thought), PartEnd(0)]
    events += [PartStart(0, "text"), PartDelta(0, "so"), PartEnd(0)]
    reply = codec.reply(Call("m", Dialogue(())), stamp)
    data = b"".join(reply.push(e) for e in [*events, Finished(0, "stop"), Usage(1, 1)])
    return msgspec.json.decode(data)["content"]


def ignored(codec, content):
    messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": content}]
    body = msgspec.json.encode({"model": "m", "max_tokens": 9, "messages": messages})
    return codec.decode(HttpRequest("POST", "/v1/messages", body=body)).ignored


@pytest.fixture
def own():
    return MessagesCodec(Keyring([NEW]))


def test_our_own_blocks_come_back_verified(own, stamp):
    assert ignored(own, think(own, stamp, "one", "two é" * 100)) == ()


def test_keys_rotate(own, stamp):
    content = think(MessagesCodec(Keyring([OLD])), stamp, "one")
    assert ignored(MessagesCodec(Keyring([NEW, OLD])), content) == ()
    assert ignored(own, content) == (SIGNATURE,)


def test_changed_moved_and_swapped_blocks_are_found(own, stamp):
    one, two, text = think(own, stamp, "one", "two")
    assert ignored(own, [{**one, "thinking": "One"}, two, text]) == (SIGNATURE,)
    assert ignored(own, [two, one, text]) == (SIGNATURE,)
    assert ignored(own, [text, one]) == (SIGNATURE,)
    swapped = {**one, "signature": two["signature"]}
    assert ignored(own, [swapped, text]) == (SIGNATURE,)


def test_the_render_is_signed_too(own, stamp):
    first = think(own, stamp, "one", fingerprint="a")[0]["signature"]
    second = think(own, stamp, "one", fingerprint="b")[0]["signature"]
    assert first[:24] != second[:24]
    mixed = second[:24] + first[24:]
    content = [{"type": "thinking", "thinking": "one", "signature": mixed}]
    assert ignored(own, content) == (SIGNATURE,)


@pytest.mark.parametrize("signature", ["", "c2lnLW90aGVy", "é", "=" * 68, "A" * 68, "\0"])
def test_foreign_signatures_are_tolerated(own, signature):
    content = [{"type": "thinking", "thinking": "t", "signature": signature}]
    assert ignored(own, content) == (SIGNATURE,)


def test_streams_sign_as_unary_bodies_do(codec, encode):
    thoughts = [PartDelta(0, word) for word in ("a ", "long ", "thought ", "é ") * 20]
    start, end = PartStart(0, "reasoning"), PartEnd(0)
    events = [Started(1, 0, "f"), start, *thoughts, end, Finished(0, "stop"), Usage(1, 1)]
    content = msgspec.json.decode(encode(events, stream=False))["content"]
    assert content[0]["signature"].encode() in encode(events)
    assert ignored(codec, content) == ()
