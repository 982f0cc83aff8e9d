"""Nothing is lost: a body is what it was, once it has been a Call; and so is what it means."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

from hypothesis import given
from msgspec.structs import asdict

from tokenwire.core.call import Call
from tokenwire.core.signing import Keyring
from tokenwire.core.testing.strategies import calls
from tokenwire.core.wire import HttpRequest
from tokenwire.plugins.protocols.responses.codec import Responses

SPEC = importlib.util.spec_from_file_location("bodies", Path(__file__).with_name("bodies.py"))
assert SPEC is not None
assert SPEC.loader is not None
BODIES = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(BODIES)

CODEC = Responses(Keyring([b"k" * 16]))


def decode(body: Any) -> Call:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    asked = CODEC.decode(HttpRequest("POST", "/v1/responses", body=data))
    assert isinstance(asked, Call)
    return asked


def again(call: Call) -> bytes:
    client = CODEC.client()
    assert client is not None
    return client.request(call).body


@given(BODIES.bodies())
def test_a_body_comes_back_as_it_was(body: Any) -> None:
    assert json.loads(again(decode(body))) == body


@given(BODIES.bodies())
def test_its_meaning_alone_says_the_same(body: Any) -> None:
    """As a call of any protocol, without what was kept of the body."""
    asked = decode(body)
    bare = {name: getattr(asked, name) for name in Call.__struct_fields__}
    told = decode(again(Call(**bare)))
    first, second = asdict(asked), asdict(told)
    for name in ("dialogue", "sampling", "stopping", "output", "identity"):
        assert second[name] == first[name], name


@given(calls())
def test_calls_of_other_protocols_are_said_in_these_words(call: Call) -> None:
    told = decode(again(call))
    assert told.dialogue.tools == call.dialogue.tools
    assert told.dialogue.turns == call.dialogue.turns
    assert told.output == call.output
