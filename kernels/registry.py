"""Chooses an op's implementation for a signature and keeps the reasons. Runs none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tokenwire.kernels.op import Implementation, Op, Signature

__all__ = ("Choice", "Objective", "choose")

Objective = Literal["latency", "determinism"]
"""`determinism` puts what is deterministic and batch invariant before what is faster."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What was taken for an op, and why not the others: for status and the start line."""

    op: str
    name: str
    why: str
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
    ordered = sorted(op.implementations, key=lambda one: _rank(one, objective), reverse=True)
    if override:
        return _overridden(op, signature, override)
    rejected: dict[str, str] = {}
    for one in ordered:
        reason = one.supports(signature)
        if not reason:
            why = f"preferred for {objective}" if not rejected else "the first that applies"
            return one.load(), Choice(op.name, one.name, why, rejected)
        rejected[one.name] = reason
    raise AssertionError(f"{op.name}: the reference refuses {signature}")


def _overridden(op: Op, signature: Signature, name: str) -> tuple[Callable[..., Any], Choice]:
    one = op.implementation(name)
    reason = one.supports(signature)
    if reason:
        raise ValueError(f"{op.name}: '{name}' was asked for and does not apply: {reason}")
    others = {other.name: "overridden" for other in op.implementations if other is not one}
    return one.load(), Choice(op.name, name, "named by configuration", others)


def _rank(one: Implementation, objective: Objective) -> tuple[bool, int]:
    steady = one.traits.deterministic and one.traits.batch_invariant
    return (objective == "determinism" and steady, one.priority)
