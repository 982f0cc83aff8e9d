"""What a plan is asked for, checked. Knows no command line and no file."""

from __future__ import annotations

import math
import re
from typing import Final, Literal

from msgspec import Struct

from tokenwire.core.cost.exchange import Dispatch
from tokenwire.core.cost.gpus import Cluster
from tokenwire.core.cost.shape import KvDtype, ModelShape, Precision
from tokenwire.core.errors import ConfigError

__all__ = ("Objective", "PlanRequest", "Pool", "seconds_of")

Objective = Literal["throughput", "user"]

DURATION: Final = re.compile(r"(?P<number>\d+(?:\.\d+)?|\.\d+)\s*(?P<unit>ms|s)")


MOST_GPUS: Final = 100_000
"""More than anybody has in one place."""


class Pool(Struct, frozen=True):
    """GPUs for one kind of work, and what one of them costs."""

    cluster: Cluster
    price: float | None = None
    """Of one GPU for an hour, in any currency."""

    def __post_init__(self) -> None:
        if self.price is not None and not 0 < self.price < math.inf:
            raise ConfigError(f"price: wanted more than 0 an hour, got {self.price}")


class PlanRequest(Struct, frozen=True):
    """One model, so many GPUs, one promise to each user."""

    shape: ModelShape
    decode: Pool
    prefill: Pool
    gpus: int
    tpot: float
    """Seconds a token that a user waits at most."""
    input: int
    """Tokens of a prompt."""
    output: int
    """Tokens of an answer."""
    context: int
    """Tokens of KV that a running sequence has in the mean."""
    objective: Objective = "throughput"
    precision: Precision = "bf16"
    kv_dtype: KvDtype = "bf16"
    dispatch: Dispatch = "pair"
    fraction: float = 0.88
    """Of a GPU's memory, for weights and KV."""
    efficiency: float = 1.0
    """Bound / real time. 1: the figures are bounds."""

    def __post_init__(self) -> None:
        for name in ("gpus", "input", "output", "context"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}: wanted at least 1, got {getattr(self, name)}")
        if self.gpus > MOST_GPUS:
            raise ConfigError(f"gpus: wanted at most {MOST_GPUS}, got {self.gpus}")
        if not 0 < self.tpot < math.inf:
            raise ConfigError(f"tpot: wanted a time above 0, got {self.tpot:g} s")
        for name in ("fraction", "efficiency"):
            if not 0 < getattr(self, name) <= 1:
                raise ConfigError(f"{name}: wanted above 0 up to 1, got {getattr(self, name)}")
        longest = self.shape.max_context
        asked = max(self.context, self.input + self.output)
        if longest and asked > longest:
            raise ConfigError(
                f"{self.shape.name} takes {longest} tokens, and input + output, or context, is "
                f"{asked}: lower it"
            )


def seconds_of(text: str) -> float:
    """ "50ms" or "0.05s" in seconds. Raises ConfigError."""
    found = DURATION.fullmatch(text.strip())
    if found is None:
        raise ConfigError(f"tpot: wanted a time as 50ms or 0.05s, got '{text}'")
    return float(found["number"]) / (1000 if found["unit"] == "ms" else 1)
