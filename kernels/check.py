"""Proves an implementation against the reference. Knows no op and prints nothing.

The runs of a case: the results compared, in memory that was full of NaN; the same batch in another
order and in parts, bit by bit, where that is promised; a repetition, bit by bit, where that is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import torch
from torch import Tensor

from tokenwire.kernels.cases import Arguments, Case, permuted_rows
from tokenwire.kernels.compare import Distance, bound, distance
from tokenwire.kernels.op import Implementation, Op, Signature

__all__ = ("Report", "check", "on_device", "poisoned")


@dataclass(frozen=True, slots=True)
class Report:
    """What came out of one case."""

    op: str
    implementation: str
    case: str
    distances: tuple[Distance, ...] = ()
    """Of each result, then of each argument written into."""
    faults: tuple[str, ...] = ()
    """Laws it breaks, in words."""
    skipped: str = ""
    """Why it does not apply."""

    def line(self) -> str:
        """For a person."""
        head = f"{self.op} {self.implementation} {self.case}:"
        if self.skipped:
            return f"{head} skipped: {self.skipped}"
        worst = max((one.metric for one in self.distances), default=0.0)
        largest = max((one.max_abs for one in self.distances), default=0.0)
        law = "FAILS: " + "; ".join(self.faults) if self.faults else "holds"
        return f"{head} metric {worst:.1e}, max abs {largest:.1e}, {law}"


def check(op: Op, implementation: Implementation, case: Case, *, device: str) -> Report:
    """Runs one case. `device`: "cpu" means Triton's interpreter for kernels of Triton."""
    report = Report(op.name, implementation.name, case.name)
    signature = on_device(case.signature, device)
    reason = implementation.supports(signature)
    if not reason and signature.interpret and not case.interpretable:
        reason = "Triton's interpreter rounds it wrongly"
    if reason:
        return replace(report, skipped=reason)
    function, reference = implementation.load(), op.reference
    arguments = tuple(_moved(value, device) for value in case.make())
    case = replace(case, keywords={name: _moved(x, device) for name, x in case.keywords.items()})
    wanted = _results(reference, arguments, case)
    with _unwarned():
        with poisoned():
            got = _results(function, arguments, case)
        if [(x.dtype, x.shape) for x in got] != [(y.dtype, y.shape) for y in wanted]:
            return replace(report, faults=("its results are of other shapes or dtypes",))
        distances = tuple(distance(x, y) for x, y in zip(got, wanted, strict=True))
        faults = list(_far(wanted, distances, case))
        traits = implementation.traits
        if traits.deterministic and not _same(got, _results(function, arguments, case)):
            faults.append("a second run gave other bits")
        if traits.batch_invariant and (case.rows or case.permute):
            faults += _order(function, arguments, got, case)
            faults += _alone(function, arguments, got, case)
    return replace(report, distances=distances, faults=tuple(faults))


def on_device(signature: Signature, device: str) -> Signature:
    """The signature of a case for this machine."""
    if device == "cpu":
        return replace(signature, device="cpu", interpret=True)
    return replace(signature, device="cuda", capability=torch.cuda.get_device_capability())


@contextmanager
def poisoned() -> Iterator[None]:
    """While it holds, torch.empty gives NaN, or the largest integer: what is not written shows."""
    before = torch.are_deterministic_algorithms_enabled()
    warned = torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before, warn_only=warned)


@contextmanager
def _unwarned() -> Iterator[None]:
    """numpy, on which Triton's interpreter runs, warns where a GPU gives infinity or NaN."""
    try:
        import numpy
    except ImportError:
        yield
    else:
        with numpy.errstate(all="ignore"):
            yield


def _results(function: Callable[..., Any], arguments: Arguments, case: Case) -> list[Tensor]:
    """Runs on copies -> what it gave, then what it wrote into."""
    copies = tuple(_copied(value) for value in arguments)
    given = function(*copies, **case.keywords)
    outputs = [given] if isinstance(given, Tensor) else list(given or ())
    return [*outputs, *(copies[place] for place in case.written)]


def _copied(value: Any) -> Any:
    """With its strides: a view stays one."""
    if not isinstance(value, Tensor):
        return value
    if value.is_contiguous():
        return value.clone()
    storage = value.new_empty(0).set_(value.untyped_storage().clone())
    return storage.as_strided(value.shape, value.stride(), value.storage_offset())


def _far(wanted: list[Tensor], distances: tuple[Distance, ...], case: Case) -> Iterator[str]:
    for place, (theirs, apart) in enumerate(zip(wanted, distances, strict=True)):
        limit = bound(theirs.dtype) if case.bound is None else case.bound
        if not apart.metric <= limit:  # so that nan is far too
            yield f"result {place} is {apart.metric:.1e} from the reference, allowed {limit:.0e}"


def _order(
    function: Callable[..., Any], arguments: Arguments, straight: list[Tensor], case: Case
) -> list[str]:
    size = _batch(arguments, case)
    order = torch.arange(size - 1, -1, -1)
    if case.permute is not None:
        moved = case.permute(arguments, order)
    else:
        moved = permuted_rows(arguments, case.rows, order)
    turned = _results(function, moved, case)
    outputs = len(turned) - len(case.written)
    rows = order if case.order_of is None else case.order_of(arguments, order)
    for place, (mine, theirs) in enumerate(zip(turned, straight, strict=True)):
        by_rows = place < outputs or case.written[place - outputs] in case.rows
        if not _same([mine], [theirs[rows] if by_rows else theirs]):
            return [f"result {place} depends on the order of the batch"]
    return []


def _alone(
    function: Callable[..., Any], arguments: Arguments, whole: list[Tensor], case: Case
) -> list[str]:
    """The first row without the others, and the later half without the first."""
    size = 0 if case.permute is not None else _batch(arguments, case)
    for some in (slice(0, 1), slice(size // 2, size)) if size > 1 else ():
        rows = torch.arange(size)[some]
        found = _results(function, permuted_rows(arguments, case.rows, rows), case)
        outputs = len(found) - len(case.written)
        for place, (mine, theirs) in enumerate(zip(found, whole, strict=True)):
            by_rows = place < outputs or case.written[place - outputs] in case.rows
            if by_rows and not _same([mine], [theirs[rows]]):
                return [f"result {place} depends on how many rows there are"]
    return []


def _batch(arguments: Arguments, case: Case) -> int:
    return int(arguments[case.rows[0] if case.rows else 0].shape[0])


def _same(one: list[Tensor], other: list[Tensor]) -> bool:
    """Bit by bit; a NaN equals itself."""
    return all(torch.equal(_bits(x), _bits(y)) for x, y in zip(one, other, strict=True))


def _bits(x: Tensor) -> Tensor:
    return x.contiguous().view(torch.uint8) if x.is_floating_point() else x


def _moved(value: Any, device: str) -> Any:
    """On the device, strides kept; of a record of tensors, a dataclass, each of them."""
    if isinstance(value, Tensor):
        if value.is_contiguous():
            return value.to(device)
        storage = value.new_empty(0).set_(value.untyped_storage()).to(device)
        return storage.as_strided(value.shape, value.stride(), value.storage_offset())
    if is_dataclass(value) and not isinstance(value, type):
        return replace(
            value, **{one.name: _moved(getattr(value, one.name), device) for one in fields(value)}
        )
    return value
