"""What is no reply of a protocol is refused in words by its client, whatever it is."""

from __future__ import annotations

import json

import pytest

from tokenwire.core.call import Call, Output
from tokenwire.core.dialogue import Dialogue
from tokenwire.core.errors import ReplyError
from tokenwire.core.ports.codec import CodecClient
from tokenwire.plugins.protocols.chat_completions.client import ChatClient
from tokenwire.plugins.protocols.completions.client import CompletionsClient
from tokenwire.plugins.protocols.messages.client import MessagesClient
from tokenwire.plugins.protocols.responses.client import ResponsesClient

CLIENTS = (ChatClient(), CompletionsClient(), MessagesClient(), ResponsesClient())
JUNK = {
    "lists without end": b'{"x":' + b"[" * 100_000,
    "objects without end": b'{"a":' * 100_000,
    "no UTF-8": b"\xff",
    "no JSON": b"<html>",
    "no object": b"[]",
}
TOKEN = {"token": "a", "logprob": -1.0, "bytes": [300]}
PART = {"type": "output_text", "text": "a", "logprobs": [TOKEN]}
CHOICE = {"index": 0, "logprobs": {"content": [TOKEN]}, "finish_reason": "stop"}
USAGE = {"input_tokens": 1, "output_tokens": 1}
RESPONSE = {
    "status": "completed",
    "output": [{"type": "message", "content": [PART]}],
    "usage": USAGE,
}


def read(client: CodecClient, data: bytes, *, stream: bool) -> None:
    reader = client.reader(Call("m", Dialogue(()), output=Output(stream=stream)))
    reader.push(b"data: " + data + b"\n\n" if stream else data)
    reader.flush()


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: type(client).__name__)
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("junk", JUNK)
def test_junk_is_refused(client: CodecClient, junk: str, *, stream: bool) -> None:
    with pytest.raises(ReplyError, match="no reply of "):
        read(client, JUNK[junk], stream=stream)


@pytest.mark.parametrize(
    ("client", "body", "stream"),
    [
        (ChatClient(), {"choices": [{**CHOICE, "message": {"content": "a"}}]}, False),
        (ChatClient(), {"choices": [{**CHOICE, "delta": {"content": "a"}}]}, True),
        (ResponsesClient(), RESPONSE, False),
        (
            ResponsesClient(),
            {"type": "response.output_text.delta", "delta": "a", "logprobs": [TOKEN]},
            True,
        ),
    ],
)
def test_a_number_that_is_no_byte_is_refused(
    client: CodecClient, body: dict[str, object], *, stream: bool
) -> None:
    with pytest.raises(ReplyError, match="bytes"):
        read(client, json.dumps(body).encode(), stream=stream)
