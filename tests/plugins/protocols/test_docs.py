"""docs/protocols says what the code does: fields, blocks, endings, errors, losses."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from tokenwire.core.errors import ErrorKind, ServiceError
from tokenwire.core.signing import Keyring
from tokenwire.core.wire import HttpRequest
from tokenwire.plugins.protocols.chat_completions import schema as chat_schema
from tokenwire.plugins.protocols.chat_completions.chunks import FINISH_REASONS
from tokenwire.plugins.protocols.chat_completions.codec import ChatCompletions
from tokenwire.plugins.protocols.completions import schema as completions_schema
from tokenwire.plugins.protocols.completions.codec import Completions
from tokenwire.plugins.protocols.completions.encode import FINISH_REASONS as COMPLETION_REASONS
from tokenwire.plugins.protocols.embeddings import schema as embeddings_schema
from tokenwire.plugins.protocols.embeddings.codec import EmbeddingsCodec
from tokenwire.plugins.protocols.messages import schema as messages_schema
from tokenwire.plugins.protocols.messages.codec import MessagesCodec
from tokenwire.plugins.protocols.messages.shapes import STOP_REASONS

PAGES = Path(__file__).parents[3] / "docs" / "protocols"
MESSAGES = MessagesCodec(Keyring([b"a key of the tests' own, 32 bytes"]))
CHAT = ChatCompletions()
SMALLEST = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "a"}]}


def section(page, title):
    """The text under a heading of a protocol's page."""
    text = (PAGES / f"{page}.md").read_text()
    found = re.search(rf"^## {title}\n(.*?)(?=^##|\Z)", text, re.DOTALL | re.MULTILINE)
    assert found, f"docs/protocols/{page}.md has no section {title!r}"
    return found.group(1)


def rows(page, title):
    """Each row's cells, without their code marks; not the head."""
    lines = [line for line in section(page, title).splitlines() if line.startswith("|")][2:]
    return [
        [cell.strip().strip("`") for cell in re.split(r"(?<!\\)\|", line.strip("|"))]
        for line in lines
    ]


def table(page, title):
    return {row[0]: row[1] for row in rows(page, title)}


@pytest.mark.parametrize(
    ("page", "codec"),
    [
        ("messages", MESSAGES),
        ("chat_completions", CHAT),
        ("completions", Completions()),
        ("embeddings", EmbeddingsCodec()),
    ],
)
def test_the_table_of_fields_is_the_codecs(page, codec):
    said = {row[0]: row[1] for row in rows(page, "Fields")}
    assert said == {rule.name: rule.how for rule in codec.fields}


@pytest.mark.parametrize(
    ("codec", "fields"),
    [
        (MESSAGES, messages_schema.Body.__struct_fields__),
        (CHAT, chat_schema.Request.__struct_fields__),
        (Completions(), completions_schema.Request.__struct_fields__),
        (EmbeddingsCodec(), embeddings_schema.Request.__struct_fields__),
    ],
)
def test_every_field_that_is_read_has_a_row(codec, fields):
    known = {rule.name.partition(".")[0].partition("[")[0] for rule in codec.fields}
    assert set(fields) <= known


BLOCKS = {
    "text": {"text": "a"},
    "image": {"source": {"type": "url", "url": "http://h/x"}},
    "document": {"source": {"type": "text", "data": "a"}},
    "search_result": {"source": "s", "title": "t", "content": []},
    "tool_use": {"id": "t", "name": "a", "input": {}},
    "tool_result": {"tool_use_id": "t"},
    "thinking": {"thinking": "t"},
    "redacted_thinking": {"data": "x"},
    "tool_reference": {"tool_name": "a"},
}


@pytest.mark.parametrize("kind", table("messages", "Blocks"))
def test_blocks(kind):
    role = "assistant" if kind in ("tool_use", "thinking", "redacted_thinking") else "user"
    asked = {"role": "assistant", "content": [{"type": "tool_use", **BLOCKS["tool_use"]}]}
    messages = [asked, {"role": role, "content": [{"type": kind, **BLOCKS[kind]}]}]
    body = msgspec.json.encode({**SMALLEST, "messages": messages})
    ignored = MESSAGES.decode(HttpRequest("POST", "/v1/messages", body=body)).ignored
    is_ignored = f"messages[].content[][type={kind}]" in ignored
    assert is_ignored == (table("messages", "Blocks")[kind] == "ignored")


def test_endings():
    assert table("messages", "Order of events") == STOP_REASONS
    assert table("chat_completions", "Order of chunks") == FINISH_REASONS
    assert table("completions", "Order of chunks") == COMPLETION_REASONS


@pytest.mark.parametrize("kind", ErrorKind)
def test_errors(kind):
    error = ServiceError(kind, "x")
    reply = MESSAGES.encode_error(error, "r")
    type_ = msgspec.json.decode(reply.body)["error"]["type"]
    rows_ = {row[0]: row[1:] for row in rows("messages", "Errors")}
    assert rows_[kind.word] == [str(reply.status), type_]
    reply = CHAT.encode_error(error, "r")
    said = msgspec.json.decode(reply.body)["error"]
    rows_ = {row[0]: row[1:] for row in rows("chat_completions", "Errors")}
    assert rows_[kind.word] == [str(reply.status), said["type"], said["code"] or ""]


@pytest.mark.parametrize(
    ("page", "codec"),
    [("messages", MESSAGES), ("chat_completions", CHAT), ("completions", Completions())],
)
def test_losses(page, codec):
    assert set(re.findall(r"`(\w+)`", section(page, "What the wire cannot carry"))) == codec.losses
