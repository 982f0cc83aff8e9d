"""Operators and methods of the sandbox, their cost known before they run. Knows no filters."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from jinja2.exceptions import SecurityError
from jinja2.runtime import LoopContext
from jinja2.sandbox import SandboxedEnvironment, SandboxedFormatter
from markupsafe import Markup, escape

from tokenwire.plugins.dialects.jinja.meter import Meter, OverBudget, size, weigh

__all__ = (
    "LISTED",
    "check_binary",
    "check_percent",
    "check_replace",
    "format_string",
    "run_method",
)

LISTED: Final = frozenset({str, int, float, bool, type(None)})
"""What a list that a template may change can hold, so that none comes to hold itself."""

MAX_BITS: Final = 65_536
"""Of an integer that an operator may make."""
MAX_PAD: Final = 10_000
"""Of a width or precision in a format string."""
WIDE: Final = re.compile(r"\d{5,}")
WIDE_PERCENT: Final = re.compile(r"%[^a-zA-Z%]*(?:\d{5,}|\*)")
REFUSED: Final = frozenset(
    {"encode", "expandtabs", "format_map", "maketrans", "to_bytes", "translate"}
)
PADDED: Final = frozenset({"center", "ljust", "rjust", "zfill"})


def check_binary(meter: Meter, operator: str, left: Any, right: Any) -> None:
    """Pay for `left operator right`, or refuse it."""
    if operator == "+":
        if isinstance(left, str) and isinstance(right, str):
            meter.text(len(left) + len(right))
        elif isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
            meter.charge((len(left) + len(right)) >> 3)
    elif operator == "*":
        _check_product(meter, left, right)
    elif operator == "**":
        if isinstance(left, int) and isinstance(right, int) and right > 0:
            _check_bits(left.bit_length() * right)
    elif operator == "%" and isinstance(left, str):
        check_percent(meter, left, right)


def _check_bits(bits: int) -> None:
    if bits > MAX_BITS:
        raise OverBudget(f"the template made an integer of {bits} bits, {MAX_BITS} are allowed")


def _check_product(meter: Meter, left: Any, right: Any) -> None:
    if isinstance(left, int) and isinstance(right, int):
        _check_bits(left.bit_length() + right.bit_length())
        return
    sequence, times = (right, left) if isinstance(left, int) else (left, right)
    if isinstance(times, int) and isinstance(sequence, (str, list, tuple)):
        length = len(sequence) * max(times, 0)
        if isinstance(sequence, str):
            meter.text(length)
        else:
            meter.charge(length >> 3)


def check_percent(meter: Meter, template: str, values: Any) -> None:
    """Pay for `template % values`."""
    if WIDE_PERCENT.search(template):
        raise OverBudget("the template pads text beyond what is allowed")
    longest = weigh(meter, values)
    meter.text(len(template) + template.count("%") * (longest + MAX_PAD))


def check_replace(meter: Meter, text: str, old: str, new: str) -> None:
    """Pay for text.replace(old, new)."""
    grown = max(0, len(new) - len(old))
    meter.text(len(text) + (text.count(old) * grown if grown else 0))


class _Formatter(SandboxedFormatter):
    """str.format in the sandbox, with bounds on each field and on all of them."""

    def __init__(self, env: SandboxedEnvironment, meter: Meter, *, escapes: bool) -> None:
        super().__init__(env)
        self._meter = meter
        self._escapes = escapes
        self._total = 0

    def format_field(self, value: Any, format_spec: str) -> str:
        if WIDE.search(format_spec):
            raise OverBudget("the template pads text beyond what is allowed")
        self._total += weigh(self._meter, value) + MAX_PAD * bool(format_spec)
        self._meter.text(self._total)
        if self._escapes:
            return str(escape(format(value, format_spec)))
        return str(format(value, format_spec))

    def convert_field(self, value: Any, conversion: Any) -> Any:
        weigh(self._meter, value)
        return super().convert_field(value, conversion)


def format_string(
    env: SandboxedEnvironment,
    meter: Meter,
    text: str,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> str:
    """text.format(*args, **kwargs) without attribute access beyond the sandbox's."""
    is_markup = isinstance(text, Markup)
    formatter = _Formatter(env, meter, escapes=is_markup)
    result = formatter.vformat(str(text), args, kwargs)
    return Markup(result) if is_markup else result


def run_method(
    meter: Meter,
    method: Callable[..., Any],
    owner: object,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Call a method of a built-in value or of a loop, having paid for it."""
    name = method.__name__
    if name in REFUSED:
        raise SecurityError(f"chat templates may not call .{name}()")
    if isinstance(owner, str):
        args = _check_string_method(meter, name, owner, args)
    elif isinstance(owner, (list, tuple, LoopContext)):
        weigh(meter, owner)
        if name == "append" and not all(type(value) in LISTED for value in args):
            raise SecurityError("chat templates may append only words and numbers to a list")
    for value in (*args, *kwargs.values()):
        weigh(meter, value)
    return method(*args, **kwargs)


def _check_string_method(
    meter: Meter, name: str, owner: str, args: tuple[Any, ...]
) -> tuple[Any, ...]:
    size(meter, owner)
    if name == "replace" and len(args) >= 2 and all(isinstance(arg, str) for arg in args[:2]):
        check_replace(meter, owner, args[0], args[1])
    elif name == "join" and len(args) == 1 and isinstance(args[0], Iterable):
        items = list(args[0])
        meter.text(weigh(meter, items) + len(owner) * len(items))
        return (items,)
    elif name in PADDED:
        for value in args:
            if isinstance(value, int):
                meter.text(abs(value))
    return args
