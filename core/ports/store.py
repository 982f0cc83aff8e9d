"""The store port: bytes by name, shared by whoever shares it. Knows nothing of what they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal, TypeAlias

from msgspec import Struct

from tokenwire.core.errors import StoreError

__all__ = ("AtomicOp", "CompareAndSet", "Incr", "Lease", "Store", "Take", "name_bytes", "name_text")


class Incr(Struct, frozen=True, tag="incr"):
    """Add `by` to the integer under the key (absent: 0) -> the new value. `ttl_s` is set when the
    key is made. `get` shows it in decimal; it stays between ±(2**53 - 1)."""

    by: int = 1
    ttl_s: float | None = None


class Take(Struct, frozen=True, tag="take"):
    """Take `tokens` from a token bucket that holds `capacity` and gains `refill_per_s`; -> how many
    seconds to wait (0: taken; inf: it will never do). Full at first. Time is the store's own."""

    tokens: float
    capacity: float
    refill_per_s: float


class Lease(Struct, frozen=True, tag="lease"):
    """Become, stay or stop being (`ttl_s` 0) the key's holder -> 1 when `holder` now holds it (or
    just released it), else 0."""

    holder: str
    ttl_s: float


class CompareAndSet(Struct, frozen=True, tag="compare_and_set"):
    """Set `value` if the key holds `expected` (None: is absent) -> 1, else 0. With None, delete."""

    expected: bytes | None
    value: bytes | None
    ttl_s: float | None = None


AtomicOp: TypeAlias = Incr | Take | Lease | CompareAndSet
Durability: TypeAlias = Literal["process", "shared"]


def name_bytes(text: str) -> bytes:
    """A name (namespace, key, holder) as stores write it: UTF-8; a lone surrogate, which UTF-8 has
    no form for, as three bytes of its own."""
    return text.encode("utf-8", "surrogatepass")


def name_text(data: bytes) -> str:
    """The inverse. Raises StoreError for what is no name."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise StoreError(f"a store holds a name that is no text: {error}") from error


class Store(ABC):
    """Laws: a key is (namespace, key), any text; namespaces never see each other; a value is what
    was set, byte for byte, until its TTL (zero or less: gone at once); a missing key is None;
    `apply` is atomic among all users of the store; every failure is StoreError, within the store's
    own time bound, an op that the key's value cannot serve among them.
    """

    durability: Durability = "process"
    """Whether other processes see it."""

    @abstractmethod
    async def get(self, namespace: str, key: str) -> bytes | None: ...

    @abstractmethod
    async def set(
        self, namespace: str, key: str, value: bytes, *, ttl_s: float | None = None
    ) -> None:
        """Replaces value and TTL. `ttl_s` None: keeps it."""

    @abstractmethod
    async def delete(self, namespace: str, key: str) -> bool:
        """Whether there was one."""

    @abstractmethod
    async def keys(self, namespace: str) -> tuple[str, ...]:
        """All live keys of a namespace, in no order; for small namespaces."""

    @abstractmethod
    async def apply(self, op: AtomicOp, namespace: str, key: str) -> float:
        """One named atomic op; see the ops for what comes back."""

    @abstractmethod
    async def close(self) -> None:
        """Let go of connections. A second call does nothing."""
