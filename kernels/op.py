"""An op: one signature, one reference, faster implementations that say why they do not apply.

Knows no particular op and imports no kernel: `Implementation.load` does, when it is chosen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

__all__ = ("REFERENCE", "Implementation", "Op", "Signature", "Traits", "any_signature")

REFERENCE = "reference"


@dataclass(frozen=True, slots=True)
class Signature:
    """What an implementation must be able to serve. An op reads the fields that concern it."""

    device: str = "cpu"
    """"cpu" or "cuda"."""
    capability: tuple[int, int] | None = None
    """The GPU's compute capability, as (9, 0)."""
    dtype: torch.dtype = torch.float32
    """Of activations."""
    kv_dtype: torch.dtype | None = None
    """Of the KV cache; None: as `dtype`."""
    head_dim: int = 0
    """Numbers of a head's key in the cache; of a token's whole entry, where it is compressed."""
    heads: int = 0
    kv_heads: int = 0
    block_size: int = 0
    """Tokens of a KV block."""
    interpret: bool = False
    """On the CPU through Triton's interpreter: for proofs, thousands of times too slow to serve."""

    @property
    def cache_dtype(self) -> torch.dtype:
        return self.dtype if self.kv_dtype is None else self.kv_dtype


@dataclass(frozen=True, slots=True)
class Traits:
    """What a caller may rely on. The defaults are those of a reference that neither multiplies
    matrices nor approximates functions: what torch does there may hang on a tensor's size."""

    deterministic: bool = True
    """The same arguments give the same bits."""
    batch_invariant: bool = True
    """A row's bits do not depend on the other rows, nor on how many there are."""
    token_invariant: bool = True
    """Of attention: a query's bits do not depend on how many of its sequence's queries are computed
    with it, nor on whether prefill or decode does it, as far as both promise this."""
    graph_safe: bool = False
    """May be captured in a CUDA graph: no host sync, no allocation outside torch's allocator."""

    @property
    def is_steady(self) -> bool:
        """What a request gets does not hang on its company."""
        return self.deterministic and self.batch_invariant and self.token_invariant


def any_signature(signature: Signature) -> str:
    """`supports` of a reference."""
    return ""


@dataclass(frozen=True, slots=True)
class Implementation:
    """One way to do an op."""

    name: str
    load: Callable[[], Callable[..., Any]]
    """Imports its module and gives the function, which has exactly the op's signature."""
    supports: Callable[[Signature], str] = any_signature
    """"" or why not, in words for a person. Never raises: a package that lacks is a reason."""
    traits: Traits = Traits()
    priority: int = 0
    """The higher is chosen, among those that apply."""


@dataclass(frozen=True, slots=True)
class Op:
    """Implementations of one signature, the reference among them."""

    name: str
    implementations: tuple[Implementation, ...]

    def __post_init__(self) -> None:
        names = [one.name for one in self.implementations]
        if len(set(names)) != len(names):
            raise ValueError(f"{self.name}: two implementations have one name: {', '.join(names)}")
        if REFERENCE not in names:
            raise ValueError(f"{self.name}: no implementation is called '{REFERENCE}'")

    @property
    def reference(self) -> Callable[..., Any]:
        """Slow, obvious, float32 inside, on any device: what all others are compared with."""
        return self.implementation(REFERENCE).load()

    def implementation(self, name: str) -> Implementation:
        """Raises ValueError that lists the names."""
        for one in self.implementations:
            if one.name == name:
                return one
        known = ", ".join(one.name for one in self.implementations)
        raise ValueError(f"{self.name} has no implementation '{name}'; it has: {known}")
