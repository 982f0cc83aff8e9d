"""Chooses an op's implementation for a signature and keeps the reasons. Runs none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tokenwire.kernels.op import Implementation, Op, Signature

__all__ = ("Choice", "Objective", "choose", "preferred")

Objective = Literal["latency", "determinism"]
"""`determinism` puts what is steady (see `Traits`) before what is faster."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What was taken for an op, and why not the others: for status and the start line."""

    op: str
    name: str
    why: str
    graph_safe: bool = False
    """See `Traits`."""
    is_steady: bool = True
    """See `Traits`."""
    rejected: Mapping[str, str] = field(default_factory=dict)
    """Implementation -> reason, in the order of preference."""


def choose(
    op: Op,
    signature: Signature,
    *,
    objective: Objective = "latency",
    override: str | None = None,
) -> tuple[Callable[..., Any], Choice]:
    """The preferred implementation that supports the signature. `override` names the one to take.

    Raises ValueError where the overriding one is unknown or does not support the signature.
    """
    one, choice = preferred(op, signature, objective=objective, override=override)
    return one.load(), choice


def preferred(
    op: Op,
    signature: Signature,
    *,
    objective: Objective = "latency",
    override: str | None = None,
) -> tuple[Implementation, Choice]:
    """As `choose`, and loads nothing."""
    if override:
        return _overridden(op, signature, override)
    rejected: dict[str, str] = {}
    for one in sorted(op.implementations, key=lambda each: _rank(each, objective), reverse=True):
        reason = one.supports(signature)
        if not reason:
            why = "the first that applies" if rejected else f"preferred for {objective}"
            return one, _choice(op, one, why, rejected)
        rejected[one.name] = reason
    raise AssertionError(f"{op.name}: the reference refuses {signature}")


def _overridden(op: Op, signature: Signature, name: str) -> tuple[Implementation, Choice]:
    one = op.implementation(name)
    reason = one.supports(signature)
    if reason:
        raise ValueError(f"{op.name}: '{name}' was asked for and does not apply: {reason}")
    others = {other.name: "overridden" for other in op.implementations if other is not one}
    return one, _choice(op, one, "named by configuration", others)


def _choice(op: Op, one: Implementation, why: str, rejected: Mapping[str, str]) -> Choice:
    traits = one.traits
    return Choice(op.name, one.name, why, traits.graph_safe, traits.is_steady, rejected)


def _rank(one: Implementation, objective: Objective) -> tuple[bool, int]:
    return (objective == "determinism" and one.traits.is_steady, one.priority)
