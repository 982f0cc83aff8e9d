"""The identity of KV blocks: a sha256 chain over ids (scheme "kvb1"). Knows no cache.

id_i = sha256("kvb1" | id_{i-1} | u32le n | n x u32le | u32le len | extra). Only full blocks have an
identity. The root commits to everything else that changes KV values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from struct import pack

from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import TokenJob

__all__ = ("SCHEME", "block", "chain", "extras", "root")

SCHEME = "kvb1"
_TAG = SCHEME.encode()
_NO_EXTRA = pack("<I", 0)


def root(commitment: str) -> bytes:
    """The chain's start, from for example "model:NAME|rev:R|dtype:bf16|block:16"."""
    return sha256(b"kvb1root" + commitment.encode()).digest()


def block(parent: bytes, ids: TokenIds, extra: bytes = b"") -> bytes:
    """The hash of one full block after `parent` (32 bytes)."""
    return sha256(
        b"".join((_TAG, parent, pack("<I", len(ids)), ids.to_le(), pack("<I", len(extra)), extra))
    ).digest()


def chain(start: bytes, ids: TokenIds, size: int, extras: Sequence[bytes] = ()) -> Iterator[bytes]:
    """The hashes of the full blocks of `ids`, `size` tokens each.

    `extras[i]` goes into block i: the salt ("salt:NAME") and the adapter ("adapter:NAME@REV") into
    the first, which the chain carries on; a picture's "media:SHA256@OFFSET" into the block that
    holds it.
    """
    # Why not `block`: a prompt has many, and one copy to bytes serves them all.
    data, count, parent, step = ids.to_le(), pack("<I", size), start, 4 * size
    for index in range(len(ids) // size):
        tail = _NO_EXTRA
        if index < len(extras):
            tail = pack("<I", len(extras[index])) + extras[index]
        part = data[index * step : (index + 1) * step]
        parent = sha256(_TAG + parent + count + part + tail).digest()
        yield parent


def extras(job: TokenJob, size: int) -> tuple[bytes, ...]:
    """What `chain` needs for this job's prompt, in blocks of `size`; empty: nothing.

    A picture goes into every block that it reaches into, with its offset there (below 0 where it
    began earlier). Several in one block: salt, adapter, media in order, each NUL in them doubled,
    joined by one NUL.
    """
    found: dict[int, list[str]] = {}
    if job.kv.salt:
        found.setdefault(0, []).append(f"salt:{job.kv.salt}")
    if job.adapter is not None:
        found.setdefault(0, []).append(f"adapter:{job.adapter.name}@{job.adapter.revision}")
    for item in job.media:
        for index in range(item.at // size, (item.at + max(item.length, 1) - 1) // size + 1):
            entry = f"media:{item.sha256}@{item.at - index * size}"
            found.setdefault(index, []).append(entry)
    if not found:
        return ()
    return tuple(
        b"\0".join(part.replace("\0", "\0\0").encode() for part in found.get(index, ()))
        for index in range(max(found) + 1)
    )
