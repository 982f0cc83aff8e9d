"""Where a block's bytes come from, and what is wrong with it. Knows no blocks."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as Base64Error
from typing import Final

from msgspec import Struct

from tokenwire.core.errors import RequestError
from tokenwire.plugins.protocols.messages import schema
from tokenwire.plugins.protocols.messages.schema import Json

__all__ = ("SOURCES", "bytes_of", "wrong", "wrong_source")

SOURCES: Final[dict[str, type[Struct]]] = {
    "base64": schema.Base64Source,
    "text": schema.TextSource,
    "url": schema.UrlSource,
    "content": schema.ContentSource,
}


def bytes_of(data: str, at: str) -> bytes:
    try:
        return b64decode(data, validate=True)
    except (Base64Error, ValueError):
        raise wrong(f"{at}.source.data", "must be base64 (RFC 4648, section 4)") from None


def wrong_source(source: Json, at: str, wanted: str) -> RequestError:
    kind = source.get("type")
    reason = f"must be {wanted}"
    if kind == "file":
        reason += "; this server keeps no files, so send the bytes or a URL"
    return wrong(f"{at}.source.type", reason)


def wrong(param: str, reason: str) -> RequestError:
    return RequestError(f"{param} {reason}", param=param)
