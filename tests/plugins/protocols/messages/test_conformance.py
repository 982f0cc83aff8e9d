"""The codec kit over this codec, as the host builds it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tokenwire.core.call import Call, Count, Output, Stopping
from tokenwire.core.dialogue import Dialogue, Text, ToolSpec, Turn
from tokenwire.core.factory import Services
from tokenwire.core.host import Host
from tokenwire.core.signing import Keyring
from tokenwire.core.testing.codec_kit import LAWS, conform, run_codec_kit
from tokenwire.core.wire import HttpRequest
from tokenwire.plugins.protocols import messages

HELLO = Call(
    "m",
    Dialogue(
        (Turn("system", (Text("Be brief."),)), Turn("user", (Text("hi"),))),
        tools=(ToolSpec("a", parameters='{"type": "object"}'),),
    ),
    stopping=Stopping(max_tokens=9, strings=("END",)),
    output=Output(stream=True),
)
BODY = (
    b'{"model":"m","max_tokens":9,"system":"Be brief.","stream":true,"stop_sequences":["END"],'
    b'"messages":[{"role":"user","content":"hi"}],'
    b'"tools":[{"name":"a","input_schema":{"type": "object"}}]}'
)
COUNTED = replace(HELLO, stopping=Stopping(), output=Output())
COUNT = BODY.replace(b'"max_tokens":9,', b"").replace(
    b'"stream":true,"stop_sequences":["END"],', b""
)
EXAMPLES = (
    (HttpRequest("POST", "/v1/messages", body=BODY), HELLO),
    (HttpRequest("POST", "/v1/messages/count_tokens", body=COUNT), Count(COUNTED)),
)


@pytest.mark.parametrize("law", LAWS)
def test_conforms(law):
    (factory,) = messages.register_codecs()
    services = Services(keys=Keyring([b"a key of the tests' own, 32 bytes"]))
    codec = factory.build(factory.settings(), services)
    run_codec_kit(codec, EXAMPLES, laws=[law])


def test_every_law_is_checked_by_name():
    """`tokenwire conform messages`: its client lets the kit check all."""
    host = Host({"messages": messages}, entry_points=False)
    assert conform(host, "messages") == LAWS
