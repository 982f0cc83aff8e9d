"""The grammar of calls that are JSON objects with `name` and `arguments`, by their markers."""

from __future__ import annotations

import json
from collections.abc import Sequence

from tokenwire.core.dialogue import ToolSpec
from tokenwire.core.ports.dialect import CallGrammar, CallSpelling
from tokenwire.plugins.dialects._shared.maker import GrammarMaker

__all__ = ("json_grammar",)


def json_grammar(
    begin: str,
    end: str = "",
    *,
    separator: str = ", ",
    arguments: str = "arguments",
    trigger: str = "",
    behind: str = "",
) -> GrammarMaker:
    """`begin` and `end` stand around all calls, brackets included. `trigger`: see CallGrammar; the
    whole of `begin` where it is "". `behind`: see CallSpelling."""

    def grammar(tools: Sequence[ToolSpec]) -> CallGrammar:
        calls = tuple(
            CallSpelling(
                tool.name, f'{{"name": {_json(tool.name)}, "{arguments}": ', "}", behind=behind
            )
            for tool in tools
        )
        return CallGrammar(trigger or begin, calls, begin, end, separator)

    return grammar


def _json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
