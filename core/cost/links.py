"""What a probe of links is asked and what it found: rates between ranks of a group. Pure values.

Ranks with neighbouring numbers share a domain: rank r is in domain r // `domain`. Rates count the
bytes that one rank sends to others in one direction, and the time of the slowest rank.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from tokenwire.core.errors import ConfigError

__all__ = ("Links", "Pair", "Probe", "Sample", "Way")

Way: TypeAlias = Literal["within", "across", "sums"]
"""An all-to-all within domains, one between domains alone, an all-reduce within domains."""


class Probe(Struct, frozen=True):
    """What to time."""

    ranks: int | None
    """None: as many as this machine has devices."""
    domain: int
    """Ranks that share a fast link."""
    row_bytes: int
    """Of one token's row on its way to an expert."""

    def __post_init__(self) -> None:
        if self.ranks is not None and self.ranks < 2:
            raise ConfigError(f"ranks: a link is between 2 or more, got {self.ranks}")
        if self.domain < 1:
            raise ConfigError(f"domain: wanted at least 1 rank, got {self.domain}")
        ranks = self.ranks or self.domain
        if ranks > self.domain and ranks % self.domain:
            raise ConfigError(
                f"{ranks} ranks do not make whole domains of {self.domain}: change one of them"
            )


class Sample(Struct, frozen=True):
    """One message size."""

    way: Way
    rows: int
    """To each other rank; of `sums`, the rows that are summed."""
    sent: int
    """Bytes that one rank sends, all others together."""
    seconds: float
    """Of the slowest rank; the median of some repeats."""

    @property
    def rate(self) -> float:
        """Bytes/s."""
        return self.sent / self.seconds


class Pair(Struct, frozen=True):
    """Two domains that exchange while all others rest."""

    first: int
    second: int
    rate: float


class Links(Struct, frozen=True):
    """Bytes/s. None: there is no such link among these ranks."""

    ranks: int
    domain: int
    row_bytes: int
    device: str
    """What was measured with: the devices, and what carries their messages."""
    within: float | None
    across: float | None
    """All domains at once."""
    sums: float | None
    """Of an all-reduce, by the bytes that a ring sends."""
    latency: float
    """Seconds of the smallest all-to-all."""
    samples: tuple[Sample, ...] = ()
    pairs: tuple[Pair, ...] = ()
    """Of three domains or more."""

    @property
    def slowest(self) -> Pair | None:
        return min(self.pairs, key=lambda each: each.rate, default=None)
