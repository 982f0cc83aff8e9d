"""Puts the meter into a parsed template: what Jinja runs without asking the sandbox asks it here.

Loops, macros and blocks get a tick at the head of their body; `~`, comparisons, slices and tuples
go through private filters, whose names have a blank so that no template can spell them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar, final

from jinja2 import nodes, pass_context
from jinja2.runtime import Context
from jinja2.visitor import NodeTransformer

from tokenwire.plugins.dialects.jinja.meter import METER, Meter, size, weigh

__all__ = ("PRIVATE_FILTERS", "insert_meter", "write")

TICK, PASS, WEIGH, SIZE, CONCAT = "the tick", "the pass", "the weight", "the size", "the concat"
CALL: Final = 4
"""Steps of entering a macro or block."""
LITERALS: Final = (nodes.Const, nodes.List, nodes.TemplateData)

Body = TypeVar("Body", nodes.For, nodes.Macro, nodes.CallBlock, nodes.Block)


@pass_context
def _tick(context: Context, steps: int) -> str:
    context.parent[METER].charge(steps)
    return ""


@pass_context
def _pass(context: Context, value: Any, steps: int) -> Any:
    context.parent[METER].charge(steps)
    return value


@pass_context
def _weigh(context: Context, value: Any) -> Any:
    if type(value) is not str or len(value) > 1024:
        weigh(context.parent[METER], value)
    return value


@pass_context
def _size(context: Context, value: Any) -> Any:
    size(context.parent[METER], value)
    return value


@pass_context
def _concat(context: Context, values: list[Any]) -> str:
    meter: Meter = context.parent[METER]
    meter.text(sum(len(v) if type(v) is str else weigh(meter, v) for v in values))
    return "".join(map(str, values))


@pass_context
def write(context: Context, value: Any) -> Any:
    """The environment's `finalize`: everything that a template prints goes through it."""
    meter: Meter = context.parent[METER]
    meter.write(len(value) if type(value) is str else weigh(meter, value))
    return value


PRIVATE_FILTERS: Final[dict[str, Callable[..., Any]]] = {
    TICK: _tick,
    PASS: _pass,
    WEIGH: _weigh,
    SIZE: _size,
    CONCAT: _concat,
}


def _filter(node: nodes.Node, name: str, *args: nodes.Expr) -> nodes.Filter:
    return nodes.Filter(node, name, list(args), [], None, None, lineno=node.lineno)


def _cost(parts: list[nodes.Node]) -> int:
    """Steps of running `parts` once: an eighth of its nodes, and the text that it writes."""
    count = text = 0
    for part in parts:
        for node in (part, *part.find_all(nodes.Node)):
            count += 1
            if isinstance(node, nodes.TemplateData):
                text += len(node.data)
    return 1 + count // 8 + (text >> 10)


@final
class _Inserter(NodeTransformer):
    def _with_tick(self, node: Body, entry: int = 0) -> Body:
        steps = nodes.Const(entry + _cost(list(node.body)), lineno=node.lineno)
        self.generic_visit(node)
        node.body.insert(0, nodes.ExprStmt(_filter(steps, TICK), lineno=node.lineno))
        return node

    def visit_For(self, node: nodes.For) -> nodes.Node:
        if node.test is not None:
            node.test = _filter(node.test, PASS, nodes.Const(_cost([node.test])))
        return self._with_tick(node)

    def visit_Macro(self, node: nodes.Macro) -> nodes.Node:
        return self._with_tick(node, CALL)

    def visit_CallBlock(self, node: nodes.CallBlock) -> nodes.Node:
        return self._with_tick(node, CALL)

    def visit_Block(self, node: nodes.Block) -> nodes.Node:
        return self._with_tick(node, CALL)

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        return _filter(nodes.List(node.nodes, lineno=node.lineno), CONCAT)

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Node:
        self.generic_visit(node)
        # Why: a tuple can be a dictionary's key, and hashing walks all of it.
        return _filter(node, WEIGH) if node.ctx == "load" else node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:
        self.generic_visit(node)
        is_slice = isinstance(node.arg, nodes.Slice) and node.ctx == "load"
        return _filter(node, SIZE) if is_slice else node

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:
        self.generic_visit(node)
        sides = [node.expr, *(operand.expr for operand in node.ops)]
        if any(operand.op in ("in", "notin") for operand in node.ops) or not any(
            isinstance(side, nodes.Const) for side in sides
        ):
            # Why not beside a constant: comparing anything with it ends at once.
            node.expr = self._weighed(node.expr)
            for operand in node.ops:
                operand.expr = self._weighed(operand.expr)
        return node

    def _weighed(self, node: nodes.Expr) -> nodes.Expr:
        return node if isinstance(node, LITERALS) else _filter(node, WEIGH)


def insert_meter(tree: nodes.Template) -> nodes.Template:
    """The tree, changed in place."""
    _Inserter().visit(tree)
    return tree
