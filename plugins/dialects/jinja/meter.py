"""The budget of one render: counted work and size, never time. Knows no template.

A step is roughly one template instruction, or 1,024 characters copied. Whoever is about to do
something whose cost is not plain from the template's text asks here first.
"""

from __future__ import annotations

from typing import Any, Final, final

from jinja2.utils import Namespace

__all__ = ("METER", "SHORT", "Meter", "OverBudget", "size", "weigh")

METER: Final = "the meter"
"""The render variable that holds the meter: no template can spell it, for its blank."""

FLAT: Final = frozenset({int, float, bool, type(None)})
VIEWS: Final[tuple[type[Any], ...]] = (type({}.keys()), type({}.values()), type({}.items()))
CONTAINERS: Final[tuple[type[Any], ...]] = (list, tuple, set, frozenset, *VIEWS)
SIZED: Final[tuple[type[Any], ...]] = (list, tuple, dict, range, *VIEWS)
SHORT: Final = 1024
"""Strings up to so many characters cost nothing beside the instruction that touches them."""


class OverBudget(Exception):
    """A render wanted more than its bound; the message says which."""


@final
class Meter:
    """What one render may still do. `max_output` is in characters, of the output and any string."""

    __slots__ = ("_steps", "_written", "max_output")

    def __init__(self, *, max_steps: int, max_output: int) -> None:
        self.max_output = max_output
        self._steps = max_steps
        self._written = 0

    def charge(self, steps: int) -> None:
        """Take `steps`; raises OverBudget when they are not left."""
        self._steps -= steps
        if self._steps < 0:
            raise OverBudget("the template did more work than `max_steps` allows")

    def text(self, length: int) -> None:
        """A string of `length` characters is about to be made or copied."""
        if length > SHORT:
            if length > self.max_output:
                raise OverBudget(
                    f"the template made a text of {length} characters, `max_output` allows"
                    f" {self.max_output}"
                )
            self.charge(length >> 10)

    def write(self, length: int) -> None:
        """`length` characters go to the output, perhaps to a macro's."""
        self._written += length
        # Why 4: what a macro wrote is counted again where its result is written.
        if self._written > 4 * self.max_output:
            raise OverBudget(f"the template wrote more than `max_output`, {self.max_output}")


def size(meter: Meter, value: Any) -> None:
    """Pay for touching `value` without looking into it."""
    if isinstance(value, str):
        if len(value) > SHORT:
            meter.text(len(value))
    elif isinstance(value, SIZED):
        meter.charge(len(value) >> 3)


def weigh(meter: Meter, value: object) -> int:
    """Pay for walking all of `value` (printing, comparing, hashing it); gives its characters.

    Nested lists that share their items are cheap to build and endless to print: what counts is the
    tree that a walk sees, and the walk itself ends with the budget.
    """
    if type(value) in FLAT:
        return 0
    if isinstance(value, str):
        meter.text(len(value))
        return len(value)
    stack: list[Any] = [value]
    nodes = characters = 0
    while stack:
        item = stack.pop()
        nodes += 1
        if nodes & 63 == 0:
            meter.charge(64)
        if isinstance(item, str):
            characters += len(item)
        elif isinstance(item, dict):
            stack.extend(item)
            stack.extend(item.values())
        elif isinstance(item, CONTAINERS):
            stack.extend(item)
        elif isinstance(item, Namespace):
            stack.append(object.__getattribute__(item, "_Namespace__attrs"))
    meter.text(characters + 8 * nodes)
    return characters + 8 * nodes
