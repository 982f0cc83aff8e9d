"""The codec kit over this codec: with and without tools, under each name for reasoning."""

from __future__ import annotations

import pytest

from tokenwire.core.call import Call, Output
from tokenwire.core.dialogue import Dialogue, Text, ToolSpec, Turn
from tokenwire.core.host import Host
from tokenwire.core.testing.codec_kit import LAWS, conform, run_codec_kit
from tokenwire.plugins.protocols import chat_completions
from tokenwire.plugins.protocols.chat_completions.codec import ChatCompletions, Settings

HELLO = Call("m", Dialogue((Turn("user", (Text("hi"),)),)))
WITH_TOOLS = Call(
    "m",
    Dialogue((Turn("user", (Text("hi"),)),), tools=(ToolSpec("f", parameters='{"a": 1.0}'),)),
    output=Output(stream=True, usage=False),
)
BODY = b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'
TOOLS_BODY = (
    b'{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true,'
    b'"tools":[{"type":"function","function":{"name":"f","parameters":{"a": 1.0}}}]}'
)


@pytest.mark.parametrize("law", LAWS)
def test_conforms(law):
    run_codec_kit(ChatCompletions(), {BODY: HELLO, TOOLS_BODY: WITH_TOOLS}, laws=[law])


@pytest.mark.parametrize("field", ["reasoning", "both"])
def test_conforms_with_tools(field):
    codec = ChatCompletions(Settings(reasoning_field=field))
    run_codec_kit(codec, {TOOLS_BODY: WITH_TOOLS}, streams=25)


def test_every_law_is_checked_by_name():
    """`tokenwire conform chat_completions`: its client lets the kit check all."""
    host = Host({"chat_completions": chat_completions}, entry_points=False)
    assert conform(host, "chat_completions") == LAWS
