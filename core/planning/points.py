"""One layout at one batch: tokens/s of a GPU and of a user; the best batch that keeps the
promise; the best of all layouts as a curve. No choice between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from tokenwire.core.cost.decode import Step, decode_step
from tokenwire.core.cost.layout import Layout
from tokenwire.core.planning.fit import room
from tokenwire.core.planning.request import PlanRequest

__all__ = ("Limit", "Point", "best_point", "frontier", "point_at", "points_of")

Limit: TypeAlias = Literal["memory", "bandwidth", "compute", "link"]


ROUNDING: Final = 1e-9
"""Rates that differ by less are the same."""


class Point(Struct, frozen=True):
    """A layout at a batch."""

    layout: Layout
    batch: int
    """Sequences of one part."""
    per_gpu: float
    """Tokens/s."""
    per_user: float
    """Tokens/s."""
    step: Step
    """The bound, without the request's efficiency."""
    limit: Limit
    """Why not more: no room for another sequence, or what takes most of the step."""


def point_at(request: PlanRequest, layout: Layout, batch: int, *, full: bool = False) -> Point:
    """`full`: no further sequence fits."""
    step = decode_step(
        request.shape,
        request.decode.cluster,
        layout,
        batch=batch,
        context=request.context,
        precision=request.precision,
        kv_dtype=request.kv_dtype,
        dispatch=request.dispatch,
    )
    per_user = request.efficiency / step.seconds
    limit: Limit = "memory" if full else step.binding
    return Point(layout, batch, per_user * batch / layout.tensor, per_user, step, limit)


def best_point(request: PlanRequest, layout: Layout) -> Point | None:
    """The smallest batch that gives a GPU as much as any that fits and keeps the promise. None
    where a batch of 1 does not.

    A step's time a sequence never rises with the batch, so the largest batch gives most; where a
    link or the products already take all the time, a smaller one gives as much, and users more.
    """
    most = room(request, layout)
    if most < 1 or not _keeps(request, point_at(request, layout, 1)):
        return None
    batch = _last(most, lambda size: _keeps(request, point_at(request, layout, size)))
    enough = point_at(request, layout, batch).per_gpu * (1 - ROUNDING)
    less = _last(batch, lambda size: point_at(request, layout, size).per_gpu < enough)
    return point_at(request, layout, min(less + 1, batch), full=less + 1 >= most)


def _last(most: int, holds: Callable[[int], bool]) -> int:
    """The largest of 1 to `most` for which it holds, 0 if for none; below that it holds for all."""
    low, high = 0, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def points_of(request: PlanRequest, best: Point) -> list[Point]:
    """Batches 1, 2, 4, ... up to the best one, and that."""
    sizes = (1 << power for power in range(best.batch.bit_length()))
    return [point_at(request, best.layout, size) for size in sizes if size < best.batch] + [best]


def frontier(points: Iterable[Point]) -> tuple[Point, ...]:
    """Those to which no other is better for a GPU and for a user; by tokens/s of a user."""
    kept: list[Point] = []
    for point in sorted(points, key=lambda each: (-each.per_user, -each.per_gpu, each.layout)):
        if not kept or point.per_gpu > kept[-1].per_gpu:
            kept.append(point)
    return tuple(kept)


def _keeps(request: PlanRequest, point: Point) -> bool:
    return point.per_user * request.tpot >= 1
