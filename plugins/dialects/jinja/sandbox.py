"""The Jinja environment of chat templates: what transformers gives them, immutable and metered.

One thing may be changed, for templates that count calls with it: a list of words and numbers, which
can be appended to and popped from.

Pure: no clock, no randomness (Jinja's `lipsum` and `random` are left out), no files (no loader).
"""

from __future__ import annotations

from typing import Any, Final, final

from jinja2 import nodes
from jinja2.exceptions import SecurityError, TemplateError
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import Context, LoopContext, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace

from tokenwire.plugins.dialects.jinja.filters import metered_filter, metered_test, tojson
from tokenwire.plugins.dialects.jinja.meter import METER, SHORT, Meter, weigh
from tokenwire.plugins.dialects.jinja.metering import PRIVATE_FILTERS, write
from tokenwire.plugins.dialects.jinja.operations import (
    LISTED,
    check_binary,
    format_string,
    run_method,
)

__all__ = ("Refusal", "Sandbox")

BUILT_IN: Final = (str, int, float, list, tuple, dict, LoopContext)
IMPURE_FILTERS: Final = ("random",)
IMPURE_GLOBALS: Final = ("lipsum",)


class Refusal(TemplateError):
    """The template called raise_exception: the conversation is not one that it takes."""


@final
class _Generation(Extension):
    """The tag {% generation %}: its body, in a scope of its own."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        call = self.call_method("_render", [])
        return nodes.CallBlock(call, [], [], body, lineno=line)

    def _render(self, caller: Macro) -> str:
        return str(caller())


@final
class _Namespace(Namespace):
    """namespace(): refuses names with a leading underscore, as transformers' does."""

    def __init__(*args: Any, **kwargs: Any) -> None:
        self, *rest = args
        attributes = dict(*rest, **kwargs)
        for name in attributes:
            _check_attribute(name)
        Namespace.__init__(self, attributes)

    def __setitem__(self, name: str, value: Any) -> None:
        _check_attribute(name)
        super().__setitem__(name, value)


def _check_attribute(name: object) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise SecurityError(f"a namespace cannot hold {name!r}: it begins with an underscore")


@final
class _Dict:
    """dict() and dict.fromkeys(), without the type itself."""

    def __call__(self, /, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return dict(*args, **kwargs)

    def fromkeys(self, keys: Any, value: Any = None) -> dict[Any, Any]:
        return dict.fromkeys(keys, value)


@final
class _Format:
    """A string's .format, which only Sandbox.call can call, for it has the meter."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __call__(self, *args: Any, **kwargs: Any) -> str:
        raise SecurityError("chat templates may call .format() only directly")


def _raise_exception(message: object = "") -> None:
    raise Refusal(str(message))


@final
class Sandbox(ImmutableSandboxedEnvironment):
    """Every render needs a Meter under the variable METER."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[_Generation, loopcontrols],
            finalize=write,
        )
        for name in IMPURE_FILTERS:
            del self.filters[name]
        for name in IMPURE_GLOBALS:
            del self.globals[name]
        self.filters["tojson"] = tojson
        self.filters = {name: metered_filter(name, f) for name, f in self.filters.items()}
        self.filters.update(PRIVATE_FILTERS)
        self.tests = {name: metered_test(name, f) for name, f in self.tests.items()}
        self.globals["raise_exception"] = _raise_exception
        self.globals["dict"] = _Dict()
        self.globals["namespace"] = _Namespace

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        if attr in ("append", "pop") and type(obj) is list:
            # Why not messages: what holds more than words was given to the template.
            return all(type(item) in LISTED for item in obj)
        if type(obj) is str:
            return not attr.startswith("_")  # What Jinja says of it, more quickly.
        return super().is_safe_attribute(obj, attr, value)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator == "+" and type(left) is str and type(right) is str:
            # Why first: templates are made of these, and short ones cost nothing.
            length = len(left) + len(right)
            if length > SHORT:
                context.parent[METER].text(length)
            return left + right
        check_binary(context.parent[METER], operator, left, right)
        return self.binop_table[operator](left, right)

    def wrap_str_format(self, value: Any) -> Any:
        method = super().wrap_str_format(value)
        return None if method is None else _Format(value.__self__)

    def call(self, context: Context, called: Any, /, *args: Any, **kwargs: Any) -> Any:
        owner = getattr(called, "__self__", None)
        if isinstance(owner, BUILT_IN) or isinstance(called, _Format):
            # Why: Jinja adds these to every call, for macros.
            kwargs.pop("_loop_vars", None)
            kwargs.pop("_block_vars", None)
            meter: Meter = context.parent[METER]
            if isinstance(called, _Format):
                return format_string(self, meter, called.text, args, kwargs)
            if self.is_safe_callable(called):
                return run_method(meter, called, owner, args, kwargs)
        elif not isinstance(called, Macro):
            for value in (*args, *kwargs.values()):
                weigh(context.parent[METER], value)
        return super().call(context, called, *args, **kwargs)
