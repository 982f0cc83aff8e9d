"""Several parts' status as one: sums, and counters that go on when a group starts again. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import final

from tokenwire.core.figures import FIGURES
from tokenwire.core.tokens import Figure

__all__ = ("Totals", "added")


def added(figures: Iterable[Figure]) -> tuple[Figure, ...]:
    """One of each name and label: counts and sizes are added up, ratios are averaged."""
    found: dict[tuple[str, str], list[tuple[float, ...]]] = {}
    for each in figures:
        like = found.setdefault((each.name, each.label), [])
        if not like or len(like[0]) == len(each.values):
            like.append(each.values)
    return tuple(Figure(name, _joined(name, like), label) for (name, label), like in found.items())


def _joined(name: str, like: Sequence[tuple[float, ...]]) -> tuple[float, ...]:
    sums = tuple(sum(values) for values in zip(*like, strict=True))
    kind = FIGURES.get(name)
    is_ratio = kind is not None and kind.kind == "gauge" and not name.endswith("_bytes")
    return tuple(each / len(like) for each in sums) if is_ratio else sums


@final
class Totals:
    """What parts counted that are gone: a sum must not fall when one starts from 0 again."""

    def __init__(self) -> None:
        self._kept: tuple[Figure, ...] = ()

    def keep(self, figures: Iterable[Figure]) -> None:
        """Of a part that is gone, the last it sent."""
        counted = [each for each in figures if _counts(each)]
        self._kept = added((*self._kept, *counted))

    def with_(self, figures: Iterable[Figure]) -> tuple[Figure, ...]:
        """Those of the parts that are there, and what is kept."""
        return added((*self._kept, *figures))


def _counts(figure: Figure) -> bool:
    kind = FIGURES.get(figure.name)
    return kind is not None and kind.kind != "gauge"
