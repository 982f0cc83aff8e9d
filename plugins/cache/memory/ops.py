"""The atomic ops as pure functions over bytes: from what a key holds to what it then holds.

The same rules as redis/lua.py, value for value, so that a deployment can change its store: a count
is decimal ASCII, a lease is its holder in UTF-8, a bucket is "bucket LEVEL SECONDS".
"""

from __future__ import annotations

import math
import re
from typing import assert_never

from msgspec import Struct

from tokenwire.core.errors import StoreError
from tokenwire.core.ports.store import AtomicOp, CompareAndSet, Incr, Lease, Take, name_bytes

__all__ = ("Step", "step")

LARGEST = 2**53 - 1
"""Counts stay within what a float, the port's answer, tells apart."""

COUNT = re.compile(rb"0|-?[1-9][0-9]{0,15}")


class Step(Struct, frozen=True):
    """The answer, and what the key holds from now on (`value` None: nothing)."""

    result: float
    value: bytes | None
    renews: bool = False
    """Whether `ttl_s` replaces the TTL; else it stays as it is."""
    ttl_s: float | None = None


def step(op: AtomicOp, held: bytes | None, now: float) -> Step:
    """Raises StoreError where the key holds something that the op cannot work on."""
    match op:
        case Incr():
            return _incr(op, held)
        case Take():
            return _take(op, held, now)
        case Lease():
            return _lease(op, held)
        case CompareAndSet():
            return _compare_and_set(op, held)
        case _:
            assert_never(op)


def _incr(op: Incr, held: bytes | None) -> Step:
    if held is not None and COUNT.fullmatch(held) is None:
        raise StoreError("incr: the key holds no integer")
    before = 0 if held is None else int(held)
    total = before + op.by
    if max(abs(before), abs(op.by), abs(total)) > LARGEST:
        raise StoreError(f"incr: counts stay between ±(2**53 - 1), this would be {total}")
    return Step(total, b"%d" % total, held is None, op.ttl_s)


def _take(op: Take, held: bytes | None, now: float) -> Step:
    if not (op.tokens >= 0 and 0 <= op.capacity < math.inf and 0 <= op.refill_per_s < math.inf):
        raise StoreError("take: tokens, capacity and refill_per_s are finite and not negative")
    level, since = (op.capacity, now) if held is None else _bucket(held)
    level = min(op.capacity, level + max(0.0, now - since) * op.refill_per_s)
    if op.tokens <= level:
        level, wait = level - op.tokens, 0.0
    elif op.tokens > op.capacity or op.refill_per_s == 0:
        wait = math.inf
    else:
        wait = (op.tokens - level) / op.refill_per_s
    # Why: a full bucket is the same as none, so it need not be kept.
    missing = op.capacity - level
    ttl_s = None if missing > 0 and op.refill_per_s == 0 else missing / (op.refill_per_s or 1.0)
    return Step(wait, b"bucket %.17g %.17g" % (level, max(now, since)), True, ttl_s)


def _bucket(held: bytes) -> tuple[float, float]:
    word, *numbers = held.split(b" ")
    if word == b"bucket" and len(numbers) == 2:
        try:
            return float(numbers[0]), float(numbers[1])
        except ValueError:
            pass
    raise StoreError("take: the key holds no bucket")


def _lease(op: Lease, held: bytes | None) -> Step:
    holder = name_bytes(op.holder)
    if op.ttl_s <= 0:
        return Step(1, None) if held == holder else Step(0, held)
    return Step(1, holder, True, op.ttl_s) if held in (None, holder) else Step(0, held)


def _compare_and_set(op: CompareAndSet, held: bytes | None) -> Step:
    return Step(1, op.value, True, op.ttl_s) if held == op.expected else Step(0, held)
