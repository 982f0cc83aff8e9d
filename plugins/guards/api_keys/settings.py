"""What `plugins: {api_keys: ...}` may say. Reads no key."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from tokenwire.core.call import Identity
from tokenwire.core.secrets import Secret

__all__ = ("Settings",)

NOBODY = Identity().tenant


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """No keys: everybody comes in, and all are one tenant."""

    keys: Mapping[str, tuple[Secret, ...]] = {}
    """By tenant, `env:NAME` or `file:PATH`; several, so that a client can change from one to the
    next. A file is read again once it has changed."""

    def __post_init__(self) -> None:
        for tenant, keys in self.keys.items():
            if not tenant or tenant == NOBODY:
                raise ValueError(
                    f"keys: wanted the name of a tenant, got {tenant!r}, which stands for all that"
                    " have none"
                )
            if not keys:
                raise ValueError(f"keys.{tenant}: wanted at least one key, got none")
