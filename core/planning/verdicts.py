"""What is to be said of each layout: fits, keeps the promise, or is refused for its link; and the
pick. Knows no pools, no prices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tokenwire.core.cost.layout import Layout
from tokenwire.core.cost.weights import weight_bytes
from tokenwire.core.planning.fit import candidates, room
from tokenwire.core.planning.points import Point, best_point, frontier, point_at, points_of
from tokenwire.core.planning.request import PlanRequest

__all__ = ("KEPT_SHARE", "Verdict", "curve", "judged", "pick")

KEPT_SHARE: Final = 0.5
"""Of the best tokens/s of the GPUs, what the fastest for a user must still give."""


class Verdict(Struct, frozen=True):
    """One layout."""

    layout: Layout
    instances: int
    """Groups of this layout that the GPUs hold."""
    weights: float
    """Bytes on one GPU."""
    room: int
    """Sequences that one part holds."""
    best: Point | None = None
    """None: it does not fit, or no batch keeps the promise."""
    refused: str = ""
    """Why it must not be used, though it fits."""
    instead: Layout | None = None
    """What to use in its place."""
    mixed: Layout | None = None
    """The best of those in its place that cut parts and divide experts, where there is one."""


def judged(request: PlanRequest, *also: Layout) -> tuple[Verdict, ...]:
    """Every candidate, refused ones marked; and those of `also` that are none."""
    cluster = request.decode.cluster
    every = candidates(request.shape, request.gpus, cluster.domain)
    found = [_fitted(request, each) for each in dict.fromkeys((*every, *also))]
    free = [
        point
        for each in found
        if each.best and not _link_binds(request, each)
        for point in points_of(request, each.best)
    ]
    return tuple(_refused(request, each, free) for each in found)


def pick(request: PlanRequest, verdicts: Sequence[Verdict]) -> Point | None:
    """By the objective. throughput: the most tokens/s of all the GPUs, those left idle included.
    user: the fastest for each user that still gives KEPT_SHARE of that. None: nothing keeps the
    promise."""
    points = [
        point
        for verdict in verdicts
        if verdict.best is not None and not verdict.refused
        for point in points_of(request, verdict.best)
    ]
    if not points:
        return None
    most = max(points, key=lambda each: (_in_all(request, each), each.per_user))
    if request.objective == "throughput":
        return most
    floor = KEPT_SHARE * _in_all(request, most)
    fast = [each for each in points if _in_all(request, each) >= floor]
    return max(fast, key=lambda each: (each.per_user, _in_all(request, each)))


def curve(request: PlanRequest, verdicts: Sequence[Verdict]) -> tuple[Point, ...]:
    """The best trade of tokens/s a GPU for tokens/s a user, over all layouts that may be used."""
    may = [each.best for each in verdicts if each.best is not None and not each.refused]
    return frontier(point for best in may for point in points_of(request, best))


def _held_back(request: PlanRequest, verdict: Verdict) -> str:
    network = f"{request.decode.cluster.nic / 1e9:.4g} GB/s"
    if (best := verdict.best) is None:
        step = point_at(request, verdict.layout, 1).step
        return f"its exchange over {network} takes {step.exchange * 1e3:.1f} ms at a batch of 1"
    return (
        f"its exchange over {network} caps a GPU at {best.per_gpu:,.0f} tokens/s from a batch of "
        f"{best.batch} on"
    )


def _for_gpu(point: Point) -> float:
    return point.per_gpu


def _in_all(request: PlanRequest, point: Point) -> float:
    used = request.gpus // point.layout.gpus * point.layout.gpus
    return point.per_gpu * used / request.gpus


def _fitted(request: PlanRequest, layout: Layout) -> Verdict:
    return Verdict(
        layout,
        request.gpus // layout.gpus,
        weight_bytes(request.shape, request.precision, layout),
        room(request, layout),
        best_point(request, layout),
    )


def _link_binds(request: PlanRequest, verdict: Verdict) -> bool:
    """Whether it leaves its domain and the network is what holds it back."""
    if verdict.layout.gpus <= request.decode.cluster.domain or verdict.room < 1:
        return False
    # Why batch 1 where there is none: the promise is broken from the first sequence on.
    step = (verdict.best or point_at(request, verdict.layout, 1)).step
    return step.exchange > step.computing


def _refused(request: PlanRequest, verdict: Verdict, free: Sequence[Point]) -> Verdict:
    """A layout whose network is the limit is refused where another, that is not held back so, gives
    each GPU as much; where users come first, at its own speed for a user."""
    if not _link_binds(request, verdict):
        return verdict
    own = verdict.best.per_gpu if verdict.best else 0.0
    fast = verdict.best.per_user if verdict.best and request.objective == "user" else 0.0
    better = [each for each in free if each.per_gpu >= own and each.per_user >= fast]
    if not better:
        return verdict
    instead = max(better, key=_for_gpu)
    why = f"{_held_back(request, verdict)}; {instead.layout.name} gives {instead.per_gpu:,.0f}"
    mixed = max((each for each in better if each.layout.is_mixed), key=_for_gpu, default=None)
    if mixed is not None and mixed != instead:
        why += f", {mixed.layout.name} {mixed.per_gpu:,.0f}"
    return replace(
        verdict,
        refused=why,
        instead=instead.layout,
        mixed=None if mixed is None else mixed.layout,
    )
