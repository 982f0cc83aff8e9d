"""Chooses an op's implementation for a signature and keeps the reasons. Runs none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tokenwire.kernels.op import Implementation, Op, Signature

__all__ = ("Choice", "Objective", "choose", "preferred")

Objective = Literal["latency", "determinism"]
"""`determinism` puts what is deterministic and batch invariant before what is faster."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What was taken for an op, and why not the others: for status and the start line."""

    op: str
    name: str
    why: str
    graph_safe: bool = False
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
            return one, Choice(op.name, one.name, why, one.traits.graph_safe, rejected)
        rejected[one.name] = reason
    raise AssertionError(f"{op.name}: the reference refuses {signature}")


def _overridden(op: Op, signature: Signature, name: str) -> tuple[Implementation, Choice]:
    one = op.implementation(name)
    reason = one.supports(signature)
    if reason:
        raise ValueError(f"{op.name}: '{name}' was asked for and does not apply: {reason}")
    others = {other.name: "overridden" for other in op.implementations if other is not one}
    return one, Choice(op.name, name, "named by configuration", one.traits.graph_safe, others)


def _rank(one: Implementation, objective: Objective) -> tuple[bool, int]:
    steady = one.traits.deterministic and one.traits.batch_invariant
    return (objective == "determinism" and steady, one.priority)
