"""The official SDK reads our bytes, and we read its requests; its transport is a function."""

from __future__ import annotations

import anthropic
import httpx2 as httpx
import msgspec
import pytest
from anthropic.types import Message, MessageTokensCount

from tokenwire.core.call import Call, Count
from tokenwire.core.dialogue import Reasoning, Text, ToolCall, ToolChoice, ToolResult
from tokenwire.core.errors import ErrorKind, RequestError, ServiceError
from tokenwire.core.events import (
    Failed,
    Finished,
    PartDelta,
    PartEnd,
    PartStart,
    Started,
    Usage,
)
from tokenwire.core.wire import HttpRequest

TOOL = {"name": "get_tide", "description": "tides", "input_schema": {"type": "object"}}


def part(kind, *texts, name="", complete=True):
    deltas = [PartDelta(0, text) for text in texts]
    return [PartStart(0, kind, name=name), *deltas, PartEnd(0, complete=complete)]


def answer(*parts, reason="stop", matched=None, usage=None, started=None):
    flat = [event for events in parts for event in events]
    usage = usage or Usage(12, 9, cached_tokens=5, reasoning_tokens=2)
    started = started or Started(12, 5, "f")
    return [started, *flat, Finished(0, reason, matched), usage]


ANSWERS = {
    "text": answer(part("text", "he", "llo é\u2028")),
    "empty": answer(),
    "empty text": answer(part("text")),
    "thinking": answer(part("reasoning", "two ", "and two"), part("text", "4")),
    "tool": answer(
        part("text", "I look."),
        part("tool_call", '{"port": "Fa', 'ro", "n": [1, 2.5, null]}', name="get_tide"),
        part("tool_call", name="now"),
        reason="tool_calls",
    ),
    "interleaved": answer(
        part("reasoning", "a"),
        part("tool_call", "{}", name="now"),
        part("reasoning", "b"),
        part("text", "c"),
    ),
    "cut call": answer(
        part("tool_call", '{"port": "Faro", "days": [1, 2', name="get_tide", complete=False),
        reason="length",
    ),
    "stop sequence": answer(part("text", "one "), reason="stop_sequence", matched="@@"),
    "context": answer(part("text", "one "), reason="context_length"),
    "cache": answer(
        part("text", "a"),
        started=Started(12, 5, cache_creation_tokens=3, cache_creation_long_tokens=1),
        usage=Usage(12, 1, 5, cache_creation_tokens=3, cache_creation_long_tokens=1),
    ),
}


class Server:
    """Answers the SDK's HTTP client through the codec."""

    def __init__(self, codec, stamp):
        self.codec, self.stamp = codec, stamp
        self.events, self.error, self.asked = answer(), None, None
        transport = httpx.MockTransport(self.handle)
        self.client = anthropic.Anthropic(
            api_key="k",
            base_url="http://test",
            max_retries=0,
            http_client=httpx.Client(transport=transport),
        )

    def handle(self, request):
        given = HttpRequest(
            request.method,
            request.url.path,
            headers=dict(request.headers),
            query=request.url.query.decode(),
            body=request.read(),
        )
        try:
            if self.error is not None:
                raise self.error
            self.asked = self.codec.decode(given)
        except (RequestError, ServiceError) as error:
            reply = self.codec.encode_error(error, "req_1")
            ids = {"request-id": "req_1"}  # As whoever sends a reply adds it.
            headers = {"content-type": reply.content_type, **reply.headers, **ids}
            return httpx.Response(reply.status, headers=headers, content=reply.body)
        if isinstance(self.asked, Count):
            reply = self.codec.answer(self.asked, 17)
            headers = {"content-type": reply.content_type}
            return httpx.Response(200, headers=headers, content=reply.body)
        reply = self.codec.reply(self.asked, self.stamp)
        out = []
        for event in self.events:
            out += [reply.keepalive() if self.asked.output.stream else b"", reply.push(event)]
        headers = {"content-type": reply.content_type}
        return httpx.Response(200, headers=headers, content=b"".join(out))

    def ask(self, **fields):
        given = {"model": "m", "max_tokens": 2048, "messages": [{"role": "user", "content": "q"}]}
        return {**given, **fields}

    def stream(self, **fields):
        with self.client.messages.stream(**self.ask(**fields)) as stream:
            return stream.get_final_message()


@pytest.fixture
def server(codec, stamp):
    server = Server(codec, stamp)
    yield server
    server.client.close()


@pytest.mark.parametrize("name", ANSWERS)
def test_the_accumulated_stream_is_the_unary_message(server, name):
    server.events = ANSWERS[name]
    streamed = server.stream()
    unary = server.client.messages.create(**server.ask())
    # Why: the accumulator sets what the protocol leaves out to None.
    assert streamed.to_dict(exclude_none=True) == unary.to_dict(exclude_none=True)
    Message.model_validate(unary.to_dict(), strict=True)


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_sent_back_is_what_was_answered(server, name):
    server.events = ANSWERS[name]
    message = server.client.messages.create(**server.ask())
    history = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": message.content},
        {"role": "user", "content": "and?"},
    ]
    server.stream(messages=history)
    assert isinstance(server.asked, Call)
    assert server.asked.ignored == ()
    parts = server.asked.dialogue.turns[1].parts
    words = {Text: "text", Reasoning: "thinking", ToolCall: "tool_use"}
    assert [words[type(part)] for part in parts] == [block.type for block in message.content]
    for part, block in zip(parts, message.content, strict=True):
        match part:
            case Text(text):
                assert text == block.text
            case Reasoning(text, signature):
                assert (text, signature) == (block.thinking, block.signature)
            case ToolCall(id_, name_, arguments):
                assert (id_, name_) == (block.id, block.name)
                assert msgspec.json.decode(arguments) == block.input


def test_the_sdks_tool_loop(server):
    server.events = ANSWERS["tool"]
    message = server.stream(tools=[TOOL], tool_choice={"type": "any"})
    assert server.asked.dialogue.tool_choice == ToolChoice("required")
    assert message.stop_reason == "tool_use"
    call = message.content[1]
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "low", "is_error": False}
    server.events = ANSWERS["text"]
    history = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": message.content},
        {"role": "user", "content": [result]},
    ]
    server.stream(messages=history, tools=[TOOL])
    turns = server.asked.dialogue.turns
    assert turns[2].parts == (ToolResult(call.id, (Text("low"),), name="get_tide"),)


def test_the_beta_client(server):
    message = server.client.beta.messages.create(**server.ask(betas=["context-1m-2025-08-07"]))
    assert message.id.startswith("msg_")
    assert server.asked.ignored == ("anthropic-beta:context-1m-2025-08-07",)


def test_counting(server):
    ask = server.ask()
    del ask["max_tokens"]
    count = server.client.messages.count_tokens(**ask)
    assert isinstance(count, MessageTokensCount)
    assert count.input_tokens == 17


CLASSES = {
    ErrorKind.INVALID_REQUEST: anthropic.BadRequestError,
    ErrorKind.CONTEXT_LENGTH: anthropic.BadRequestError,
    ErrorKind.AUTHENTICATION: anthropic.AuthenticationError,
    ErrorKind.PERMISSION: anthropic.PermissionDeniedError,
    ErrorKind.NOT_FOUND: anthropic.NotFoundError,
    ErrorKind.MODEL_NOT_FOUND: anthropic.NotFoundError,
    ErrorKind.RATE_LIMITED: anthropic.RateLimitError,
    ErrorKind.INTERNAL: anthropic.InternalServerError,
    ErrorKind.OVERLOADED: anthropic.InternalServerError,
}


@pytest.mark.parametrize("kind", ErrorKind)
def test_errors(server, kind):
    server.error = ServiceError(kind, "no luck", retry_after=2)
    with pytest.raises(CLASSES.get(kind, anthropic.APIStatusError), match="no luck") as caught:
        server.client.messages.create(**server.ask())
    assert caught.value.status_code == kind.status
    assert caught.value.request_id == "req_1"
    assert caught.value.response.headers["retry-after"] == "2"


def test_an_error_in_the_stream(server):
    server.events = [*ANSWERS["text"][:3], Failed(ErrorKind.OVERLOADED, "no luck")]
    with pytest.raises(anthropic.APIStatusError, match="overloaded_error"):
        server.stream()
