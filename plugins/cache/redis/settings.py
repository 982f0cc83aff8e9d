"""What `cache:` may say for the Redis store, checked without touching the network."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from msgspec import Meta, Struct

from tokenwire.core.resolve import parse_internal
from tokenwire.core.secrets import Secret

__all__ = ("RedisSettings",)

SCHEMES = ("internal", "redis", "rediss", "unix")


class RedisSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """`cache: {type: redis, ...}`"""

    endpoint: str = "redis://127.0.0.1:6379"
    """internal://name:port (DNS, every address, asked again on reconnect), redis://host:port,
    rediss://host:port (TLS) or unix:///path; the last three may end in the URL forms of redis-py
    ("/2" or "?db=2" for a database). Holds no password."""
    username: str | None = None
    password: Secret | None = None
    """`env:NAME` or `file:PATH`; read again for every connection. Never the password itself."""
    timeout_s: Annotated[float, Meta(gt=0)] = 0.25
    """What one call may take, connecting included."""
    prefix: Annotated[str, Meta(pattern=r"^[A-Za-z0-9._-]+$")] = "tokenwire"
    """The first part of every key's name: deployments that differ in it share a server unseen."""
    connections: Annotated[int, Meta(ge=1)] = 16
    """At most; calls beyond wait for one, within timeout_s."""
    ca_file: str | None = None
    """For rediss://: whom to trust, in PEM; default: the system's."""

    def __post_init__(self) -> None:
        parts = urlsplit(self.endpoint)
        if parts.scheme not in SCHEMES:
            raise ValueError(
                "cache.endpoint: wanted internal://name:port, redis://, rediss:// or unix://,"
                f" got the scheme {parts.scheme!r}"
            )
        if "password=" in parts.query or parts.password is not None:
            raise ValueError(
                "cache.endpoint holds a password: put it in cache.password as env:NAME or file:PATH"
            )
        if parts.scheme == "internal":
            parse_internal(self.endpoint)
