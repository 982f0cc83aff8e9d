"""HTTP as values, and the line format that protocols stream: SSE. No protocol."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from math import ceil
from typing import Final, final

import msgspec
from msgspec import Struct

from tokenwire.core.errors import CallError

__all__ = (
    "HttpReply",
    "HttpRequest",
    "Route",
    "SseMessage",
    "SseReader",
    "Stamp",
    "escape_breaks",
    "json_text",
    "retry_after",
    "sse",
)

NO_HEADERS: Mapping[str, str] = {}


class Route(Struct, frozen=True):
    """One entry of the route table. `path` may hold `{name}`, which matches one path segment."""

    method: str
    path: str
    summary: str = ""
    body: type | None = None
    """The Struct that a request's JSON body is read into, for /openapi.json; None: any object."""
    reply: type | None = None
    """The Struct that a whole (not streamed) reply is; None: not described."""
    media: tuple[str, ...] = ("application/json",)
    """The content types that a good reply may have."""
    bodiless: bool = False
    """The body may be left out."""
    query: tuple[str, ...] = ()
    """Parameters of the query string that are read."""


class HttpRequest(Struct, frozen=True):
    """A whole request. Header names are lower case; `path` is decoded, `query` is not."""

    method: str
    path: str
    headers: Mapping[str, str] = NO_HEADERS
    query: str = ""
    body: bytes = b""
    path_params: Mapping[str, str] = NO_HEADERS


class HttpReply(Struct, frozen=True):
    """A whole reply."""

    status: int
    content_type: str
    body: bytes
    headers: Mapping[str, str] = NO_HEADERS


def retry_after(error: CallError) -> dict[str, str]:
    """The header Retry-After (RFC 9110, 10.2.3: whole seconds), where the error has a time."""
    if error.retry_after is None:
        return {}
    return {"retry-after": str(max(1, ceil(error.retry_after)))}


class Stamp(Struct, frozen=True):
    """What a reply may know of the world: its id, the time (Unix seconds), random bytes.

    Ids of a reply derive from (entropy, k), so that replay and restore give the same ones.
    """

    id: str
    time: float
    entropy: bytes

    def token(self, k: int, length: int = 24) -> str:
        """The k-th id's random part: letters and digits, at most 40."""
        digest = sha256(self.entropy + k.to_bytes(4, "big")).digest()
        number = int.from_bytes(digest, "big")
        letters = []
        for _ in range(min(length, 40)):
            number, rest = divmod(number, 62)
            letters.append(ALPHABET[rest])
        return "".join(letters)


ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def sse(data: bytes, event: bytes | None = None) -> bytes:
    """One server-sent event (WHATWG HTML 9.2). `data` must hold no line break; JSON never does."""
    if event is None:
        return b"data: " + data + b"\n\n"
    return b"event: " + event + b"\ndata: " + data + b"\n\n"


BREAKS: Final = ("\u0085", "\u2028", "\u2029")
"""Line breaks to some readers of lines, though neither to SSE nor to JSON."""
ESCAPES: Final = tuple((text.encode(), b"\\u%04x" % ord(text)) for text in BREAKS)

_json: Final = msgspec.json.Encoder().encode


def json_text(text: str) -> bytes:
    """A JSON string in which no reader of lines finds a line break."""
    data = _json(text)
    # Why so: it runs for each delta, and a search that finds nothing in a str is the cheapest.
    if text.isascii() or not ("\u2028" in text or "\u2029" in text or "\x85" in text):
        return data
    return escape_breaks(data)


def escape_breaks(data: bytes) -> bytes:
    """The same JSON (UTF-8) with each of `BREAKS` written as its escape."""
    for raw, escape in ESCAPES:
        data = data.replace(raw, escape)
    return data


class SseMessage(Struct, frozen=True):
    """A read event; `comment` for lines that begin with a colon."""

    data: str = ""
    event: str = ""
    comment: str | None = None


LINE = re.compile(rb"\r\n|\n|\r")


@final
class SseReader:
    """Reads server-sent events from any cutting of their bytes."""

    __slots__ = ("_buffer", "_data", "_event")

    def __init__(self) -> None:
        self._buffer = b""
        self._event = ""
        self._data: list[str] = []

    def push(self, chunk: bytes) -> list[SseMessage]:
        buffer = self._buffer + chunk
        messages: list[SseMessage] = []
        at = 0  # Why no slice a line: a whole stream in one chunk would be copied for each.
        while match := LINE.search(buffer, at):
            if match.group() == b"\r" and match.end() == len(buffer):
                break  # Why: the next chunk may begin with its \n.
            line = buffer[at : match.start()].decode()
            at = match.end()
            self._line(line, messages)
        self._buffer = buffer[at:]
        return messages

    def _line(self, line: str, messages: list[SseMessage]) -> None:
        if not line:
            if self._data:
                messages.append(SseMessage("\n".join(self._data), self._event))
            self._data, self._event = [], ""
            return
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not name:
            messages.append(SseMessage(comment=value))
        elif name == "data":
            self._data.append(value)
        elif name == "event":
            self._event = value
