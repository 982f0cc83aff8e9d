"""What a shared store's two sides say: u32le length, then msgpack. Knows no socket path.

Names are bytes (UTF-8, lone surrogates kept), because msgpack strings cannot carry every text.
"""

from __future__ import annotations

import asyncio
from typing import TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from tokenwire.core.errors import StoreError
from tokenwire.core.ports.store import AtomicOp

__all__ = (
    "MAX_FRAME",
    "Apply",
    "Delete",
    "Get",
    "Keys",
    "Reply",
    "Request",
    "Set",
    "decode",
    "encode",
    "read_frame",
)

MAX_FRAME = 64 * 1024 * 1024
"""Bytes of one frame's body; more is refused on both sides."""

HEAD = 4

T = TypeVar("T")


class Get(Struct, frozen=True, array_like=True, tag="get"):
    id: int
    namespace: bytes
    key: bytes


class Set(Struct, frozen=True, array_like=True, tag="set"):
    id: int
    namespace: bytes
    key: bytes
    value: bytes
    ttl_s: float | None = None


class Delete(Struct, frozen=True, array_like=True, tag="delete"):
    id: int
    namespace: bytes
    key: bytes


class Keys(Struct, frozen=True, array_like=True, tag="keys"):
    id: int
    namespace: bytes


class Apply(Struct, frozen=True, array_like=True, tag="apply"):
    id: int
    namespace: bytes
    key: bytes
    op: AtomicOp


Request: TypeAlias = Get | Set | Delete | Keys | Apply


class Reply(Struct, frozen=True, array_like=True):
    """Answers the request of this id: exactly what its verb returns, or why it failed."""

    id: int
    error: str | None = None
    value: bytes | None = None
    """get"""
    number: float = 0.0
    """apply; delete: 1 or 0."""
    names: tuple[bytes, ...] = ()
    """keys"""


_ENCODER = msgspec.msgpack.Encoder()


def encode(value: Request | Reply, *, max_frame: int = MAX_FRAME) -> bytes:
    """A whole frame. Raises StoreError where it is too large or holds what msgpack cannot carry."""
    try:
        body = _ENCODER.encode(value)
    except (OverflowError, UnicodeEncodeError) as error:
        raise StoreError(f"the shared store cannot carry this call: {error}") from error
    if len(body) > max_frame:
        raise StoreError(f"the shared store takes {max_frame} bytes a call, this has {len(body)}")
    return len(body).to_bytes(HEAD, "little") + body


def decode(body: bytes, kind: type[T]) -> T:
    """Raises StoreError for anything but that kind."""
    try:
        return msgspec.msgpack.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise StoreError(f"the shared store got a frame it cannot read: {error}") from error


async def read_frame(reader: asyncio.StreamReader, *, max_frame: int = MAX_FRAME) -> bytes:
    """The next body. Raises StoreError for one that is too large, EOFError at the end."""
    size = int.from_bytes(await reader.readexactly(HEAD), "little")
    if size > max_frame:
        raise StoreError(f"the shared store takes {max_frame} bytes a frame, {size} were announced")
    return await reader.readexactly(size)
