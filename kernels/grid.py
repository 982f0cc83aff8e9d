"""Every op by every implementation by every case. Runs them; judges and prints nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from tokenwire.kernels.cases import Bench, Case
from tokenwire.kernels.check import Report, check
from tokenwire.kernels.op import REFERENCE, Op
from tokenwire.kernels.ops import FOLDERS

__all__ = ("benches", "cases", "reports")


def cases(ops: Sequence[str] = ()) -> Iterator[tuple[Op, tuple[Case, ...]]]:
    """The ops by name (none given: all), each with its cases. Raises ValueError."""
    for folder, op in _named(ops):
        yield op, _declared(folder, "CASES").get(op.name, ())


def benches(ops: Sequence[str] = ()) -> Iterator[tuple[Op, tuple[Bench, ...]]]:
    """As `cases`, what is measured."""
    for folder, op in _named(ops):
        yield op, _declared(folder, "BENCHES").get(op.name, ())


def reports(ops: Sequence[str] = (), *, device: str) -> Iterator[Report]:
    """What each implementation but the reference gives, case by case."""
    for op, every in cases(ops):
        for one in op.implementations:
            if one.name != REFERENCE:
                yield from (check(op, one, case, device=device) for case in every)


def _named(names: Sequence[str]) -> list[tuple[str, Op]]:
    found = [
        (folder, op)
        for folder in FOLDERS
        for op in import_module(f"tokenwire.kernels.{folder}").OPS
    ]
    known = {op.name for _, op in found}
    for name in names:
        if name not in known:
            raise ValueError(f"no op is called '{name}'; they are: {', '.join(sorted(known))}")
    return [(folder, op) for folder, op in found if not names or op.name in names]


def _declared(folder: str, name: str) -> dict[str, Any]:
    module = f"tokenwire.kernels.{folder}.cases"
    if find_spec(module) is None:
        return {}
    declared: dict[str, Any] = getattr(import_module(module), name)
    return declared
