"""The filters and tests of the sandbox: Jinja's own, each made to pay for its work first.

Of Jinja's filters `random` is left out, for it is not pure. `tojson` is the one that transformers
gives to chat templates: JSON without HTML escapes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from jinja2 import pass_context
from jinja2.runtime import Context
from jinja2.utils import _PassArg

from tokenwire.plugins.dialects.jinja.meter import METER, Meter, OverBudget, size, weigh
from tokenwire.plugins.dialects.jinja.operations import check_percent, check_replace

__all__ = ("metered_filter", "metered_test", "tojson")

DEEP: Final = frozenset(
    {
        "dictsort", "escape", "e", "forceescape", "format", "groupby", "join", "max", "min",
        "pprint", "sort", "string", "tojson", "unique", "urlencode", "xmlattr",
    }
)  # fmt: skip
"""Filters that look at everything inside their value."""
SORTS: Final = frozenset({"dictsort", "groupby", "sort"})
READING: Final = frozenset(
    {"eq", "equalto", "==", "ne", "!=", "gt", "greaterthan", ">", "ge", ">=", "lt", "lessthan", "<",
     "le", "<=", "in", "lower", "upper"}
)  # fmt: skip
"""Tests that look at everything inside their value."""
MAX_INDENT: Final = 64

Args = tuple[Any, ...]
Named = dict[str, Any]


def tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON text as the reference renderer writes it: `, ` and `: `, no ASCII or HTML escapes."""
    for pad in (indent, *(separators or ())):
        if (len(pad) if isinstance(pad, str) else pad or 0) > MAX_INDENT:
            raise OverBudget(f"tojson was asked for an indent beyond {MAX_INDENT}")
    if isinstance(value, Iterator):
        # Why: what `map` gives is a list to templates that were written for other engines.
        value = list(value)
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def _argument(args: Args, named: Named, at: int, name: str, default: Any) -> Any:
    return args[at] if len(args) > at else named.get(name, default)


def _before_join(meter: Meter, value: Any, args: Args, named: Named) -> Any:
    items = list(value) if isinstance(value, Iterable) else value
    between = _argument(args, named, 0, "d", "")
    if isinstance(items, list):
        meter.text(weigh(meter, items) + weigh(meter, between) * len(items))
    return items


def _before_replace(meter: Meter, value: Any, args: Args, named: Named) -> Any:
    old, new = _argument(args, named, 0, "old", ""), _argument(args, named, 1, "new", "")
    check_replace(meter, str(value), str(old), str(new))
    return value


def _before_format(meter: Meter, value: Any, args: Args, named: Named) -> Any:
    check_percent(meter, str(value), named or args)
    return value


def _before_lines(meter: Meter, value: Any, args: Args, named: Named) -> Any:
    # indent and wordwrap put a text of the template's choice after every line.
    text = str(value)
    pads = [arg for arg in (*args, *named.values()) if not isinstance(arg, bool)]
    pad = sum(
        len(arg) if isinstance(arg, str) else arg for arg in pads if isinstance(arg, (str, int))
    )
    meter.text(len(text) + (len(text.split()) + text.count("\n") + 1) * max(pad, 0))
    return value


def _before_sum(meter: Meter, value: Any, args: Args, named: Named) -> Any:
    items = list(value) if isinstance(value, Iterable) else value
    if isinstance(items, list):
        inner = sum(len(item) for item in items if isinstance(item, (list, tuple)))
        meter.charge(len(items) * (1 + (inner >> 3)))
    return items


def _before_round(meter: Meter, value: Any, args: Args, named: Named) -> Any:
    if abs(_argument(args, named, 0, "precision", 0)) > MAX_INDENT:
        raise OverBudget(f"round was asked for more than {MAX_INDENT} digits")
    return value


BEFORE: Final[dict[str, Callable[[Meter, Any, Args, Named], Any]]] = {
    "format": _before_format,
    "indent": _before_lines,
    "join": _before_join,
    "replace": _before_replace,
    "round": _before_round,
    "sum": _before_sum,
    "wordwrap": _before_lines,
}


def _metered_items(meter: Meter, items: Iterator[Any]) -> Iterator[Any]:
    for item in items:
        meter.charge(2)
        yield item


def metered_filter(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, paying for its value and arguments before it runs and for its result after."""
    passed = _PassArg.from_obj(function)
    look = weigh if name in DEEP else size
    effort = 16 if name in SORTS else 1
    before = BEFORE.get(name)

    @pass_context
    def run(context: Context, value: Any, *args: Any, **named: Any) -> Any:
        meter: Meter = context.parent[METER]
        for _ in range(effort):
            look(meter, value)
        for argument in (*args, *named.values()):
            if type(argument) is int:
                meter.charge(abs(argument) >> 3)
            else:
                weigh(meter, argument)
        if before is not None:
            value = before(meter, value, args, named)
        if passed is None:
            result = function(value, *args, **named)
        elif passed is _PassArg.context:
            result = function(context, value, *args, **named)
        elif passed is _PassArg.eval_context:
            result = function(context.eval_ctx, value, *args, **named)
        else:
            result = function(context.environment, value, *args, **named)
        if isinstance(result, Iterator):
            return _metered_items(meter, result)
        size(meter, result)
        return result

    return run


def metered_test(name: str, function: Any) -> Callable[..., Any]:
    """`function`, or where it reads all of its value, one that pays for that first."""
    if name not in READING:
        unmetered: Callable[..., Any] = function
        return unmetered

    @pass_context
    def run(context: Context, value: Any, *args: Any) -> Any:
        meter: Meter = context.parent[METER]
        for side in (value, *args):
            weigh(meter, side)
        return function(value, *args)

    return run
