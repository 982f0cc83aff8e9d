"""What `cache:` may say for the memory store."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

__all__ = ("MemorySettings",)


class MemorySettings(Struct, frozen=True, forbid_unknown_fields=True):
    """`cache: {type: memory, ...}`"""

    max_bytes: Annotated[int, Meta(ge=4096)] = 256 * 1024 * 1024
    """Bytes of names and values, with a fixed sum for each key. When full, the value that was set
    with a TTL and used longest ago makes room; counters, buckets, leases, compared-and-set values
    and values without a TTL never do: where only those are left, writing fails."""
