"""A whole plan as one value: does it fit, every layout, the curve, the pick, the pools."""

from __future__ import annotations

from msgspec import Struct

from tokenwire.core.cost.layout import Layout
from tokenwire.core.planning.fit import smallest
from tokenwire.core.planning.points import Point
from tokenwire.core.planning.pools import Pools, balanced
from tokenwire.core.planning.request import PlanRequest
from tokenwire.core.planning.verdicts import Verdict, curve, judged, pick

__all__ = ("Plan", "make_plan")


class Plan(Struct, frozen=True):
    """The answer to a request."""

    request: PlanRequest
    smallest: Layout | None
    """The layout of fewest GPUs that holds the model; None: none of up to 1024."""
    verdicts: tuple[Verdict, ...]
    curve: tuple[Point, ...]
    pick: Point | None
    """None: it does not fit, or no layout keeps the promise."""
    pools: Pools | None

    @property
    def fits(self) -> bool:
        return any(each.room > 0 for each in self.verdicts)


def make_plan(request: PlanRequest) -> Plan:
    """Judges every layout of the request's GPUs."""
    verdicts = judged(request)
    picked = pick(request, verdicts)
    return Plan(
        request,
        smallest(request),
        verdicts,
        curve(request, verdicts),
        picked,
        None if picked is None else balanced(request, picked),
    )
