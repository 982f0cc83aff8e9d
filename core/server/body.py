"""Bodies within bounds: what a head declares, and gzip without bombs. Knows no server."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Mapping

from tokenwire.core.errors import ErrorKind, RequestError

__all__ = ("broken_body", "declared_length", "decoded", "is_gzip", "too_large")

GZIP_WINDOW = 31
MOST_MEMBERS = 1024
INLINE = 64 * 1024
"""Bytes of gzip that are inflated on the loop; more goes to a thread."""


def too_large(limit: int) -> RequestError:
    return RequestError(
        f"the request's body is larger than the {limit} bytes that this server takes"
        " (server.max_body)",
        kind=ErrorKind.TOO_LARGE,
    )


def broken_body() -> RequestError:
    return RequestError(
        "the request's body broke off, or is not the chunked encoding that its head declares"
    )


def declared_length(headers: Mapping[str, str], limit: int) -> int | None:
    """Content-Length, 0 where there is no body, None for a chunked one. Raises RequestError."""
    if "transfer-encoding" in headers:
        return None
    text = headers.get("content-length", "0")
    if not (text.isascii() and text.isdigit()):
        raise RequestError(f"content-length must be a number of bytes, got {text[:40]!r}")
    length = int(text) if len(text) < 20 else limit + 1
    if length > limit:
        raise too_large(limit)
    return length


def is_gzip(headers: Mapping[str, str]) -> bool:
    """Whether the body is gzip; raises RequestError for any other coding than identity."""
    coding = headers.get("content-encoding", "identity").strip().lower()
    if coding in {"", "identity"}:
        return False
    if coding in {"gzip", "x-gzip"}:
        return True
    raise RequestError(
        f"content-encoding {coding[:40]!r} is not supported: send the body as it is, or gzip",
        kind=ErrorKind.UNSUPPORTED_MEDIA,
    )


async def decoded(data: bytes, limit: int) -> bytes:
    """A gzip body's content, at most `limit` bytes of it. Raises RequestError."""
    if len(data) <= INLINE:
        return inflate(data, limit)
    return await asyncio.to_thread(inflate, data, limit)


def inflate(data: bytes, limit: int) -> bytes:
    """Never holds more than `limit` + 1 bytes of output, whatever the input claims."""
    parts: list[bytes] = []
    room = limit
    while data:
        machine = zlib.decompressobj(GZIP_WINDOW)
        try:
            part = machine.decompress(data, room + 1)
        except zlib.error as error:
            raise RequestError("content-encoding is gzip, but the body is not gzip") from error
        room -= len(part)
        if room < 0:
            raise too_large(limit)
        if not machine.eof:
            raise RequestError("the gzip body breaks off before its end")
        parts.append(part)
        if len(parts) > MOST_MEMBERS:
            raise RequestError(f"the gzip body has more than {MOST_MEMBERS} members")
        data = machine.unused_data
    return b"".join(parts)
