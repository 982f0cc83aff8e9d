"""The identity of KV blocks: a sha256 chain over ids (scheme "kvb1"). Knows no cache.

id_i = sha256("kvb1" | id_{i-1} | u32le n | n x u32le | u32le len | extra). Only full blocks have an
identity. The root commits to everything else that changes KV values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from struct import pack

from tokenwire.core.token_ids import TokenIds

__all__ = ("SCHEME", "block", "chain", "root")

SCHEME = "kvb1"
_TAG = SCHEME.encode()


def root(commitment: str) -> bytes:
    """The chain's start, from for example "model:NAME|rev:R|dtype:bf16|block:16"."""
    return sha256(b"kvb1root" + commitment.encode()).digest()


def block(parent: bytes, ids: TokenIds, extra: bytes = b"") -> bytes:
    """The hash of one full block after `parent` (32 bytes)."""
    return sha256(
        b"".join((_TAG, parent, pack("<I", len(ids)), ids.to_le(), pack("<I", len(extra)), extra))
    ).digest()


def chain(
    start: bytes, ids: TokenIds, size: int, extras: Sequence[bytes] = ()
) -> Iterator[bytes]:
    """The hashes of the full blocks of `ids`, `size` tokens each.

    `extras[i]` goes into block i: the salt ("salt:NAME") and the adapter ("adapter:NAME@REV") into
    the first, which the chain carries on; a picture's "media:SHA256@OFFSET" into the block that
    holds it.
    """
    parent = start
    for index in range(len(ids) // size):
        extra = extras[index] if index < len(extras) else b""
        parent = block(parent, TokenIds(ids[index * size : (index + 1) * size]), extra)
        yield parent
