"""Whole requests and replies as files, each driven both ways.

In golden/requests NAME.json is a body, NAME.call.json what it means; in golden/replies
NAME.events.json is an answer, NAME.sse its stream, NAME.body.json its unary body. tests/goldens.py
says how they are written.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from tests.goldens import check
from tests.plugins.protocols.messages.plain import plain
from tests.plugins.protocols.messages.reading import reader_of
from tokenwire.core.call import Call
from tokenwire.core.events import Finished, PartDelta, PartEnd, PartStart, Started, Usage
from tokenwire.core.fold import fold
from tokenwire.core.wire import HttpRequest
from tokenwire.plugins.protocols.messages.client import request

GOLDEN = Path(__file__).parent / "golden"
REQUESTS = sorted(
    path for path in (GOLDEN / "requests").glob("*.json") if not path.stem.endswith(".call")
)
REPLIES = sorted((GOLDEN / "replies").glob("*.events.json"))
Kept = Started | PartStart | PartDelta | PartEnd | Finished | Usage


def lean(value):
    """Without fields that have their default, so that a new one changes no file."""
    if isinstance(value, msgspec.Struct):
        kept = {
            field.encode_name: lean(getattr(value, field.name))
            for field in msgspec.structs.fields(value)
            if getattr(value, field.name) != field.default
        }
        tag = value.__struct_config__.tag
        return {"type": tag, **kept} if tag is not None else kept
    if isinstance(value, (list, tuple)):
        return [lean(item) for item in value]
    if isinstance(value, dict):
        return {key: lean(item) for key, item in value.items()}
    return value


def pretty(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(lean(value)), indent=2) + b"\n"


@pytest.mark.parametrize("path", REQUESTS, ids=lambda path: path.stem)
def test_requests(codec, path):
    call = codec.decode(HttpRequest("POST", "/v1/messages", body=path.read_bytes()))
    expected = path.with_suffix(".call.json")
    check(expected, pretty(call))
    written = msgspec.json.decode(expected.read_bytes(), type=Call)
    again = codec.decode(request(written))
    kept = replace(plain(again), ignored=written.ignored, unknown=written.unknown)
    assert kept == plain(written)
    assert codec.decode(request(codec.decode(request(written)))) == codec.decode(request(written))


@pytest.mark.parametrize("path", REPLIES, ids=lambda path: path.name.removesuffix(".events.json"))
def test_replies(encode, path):
    events = msgspec.json.decode(path.read_bytes(), type=list[Kept])
    name = path.name.removesuffix(".events.json")
    stream, body = encode(events), encode(events, stream=False)
    check(path.with_name(f"{name}.sse"), stream)
    check(path.with_name(f"{name}.body.json"), body + b"\n")
    whole = reader_of(stream=True).push(stream)
    reader = reader_of(stream=True)
    assert [event for byte in stream for event in reader.push(bytes((byte,)))] == whole
    assert parts(whole) == parts(events)
    unary = reader_of(stream=False)
    unary.push(body)
    assert [part[:2] for part in parts(unary.flush())] == [part[:2] for part in parts(events)]


def parts(events):
    return [(part.kind, part.name, part.text) for part in fold(events).choices[0].parts]


def test_there_are_goldens():
    assert len(REQUESTS) >= 4
    assert len(REPLIES) >= 4
