"""Parser `apertus`, as data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from tokenwire.core.dialogue import ToolSpec
from tokenwire.core.ports.dialect import CallGrammar, CallSpelling, ParserMaker, ReasoningStyle
from tokenwire.plugins.dialects._shared.format import CallStart, Format
from tokenwire.plugins.dialects._shared.maker import FormatMaker
from tokenwire.plugins.dialects.apertus.keyed_call import keyed_calls

__all__ = ("apertus_maker",)

CALLS, CALLS_END = "<|tools_prefix|>", "<|tools_suffix|>"
APERTUS: Final = Format(
    "<|inner_prefix|>",
    "<|inner_suffix|>",
    calls=(CallStart(CALLS, keyed_calls(CALLS_END)),),
    ends=(CALLS_END,),
    trims="",
    lead=0,
)
TURNS: Final = tuple(
    f"<|{role}_{end}|>"
    for role in ("system", "developer", "user", "assistant")
    for end in ("start", "end")
)
STOPS: Final = ("<|assistant_end|>",)


def apertus_maker(reasoning: ReasoningStyle = "auto") -> ParserMaker:
    return FormatMaker(
        APERTUS, markers=TURNS, stop_strings=STOPS, reasoning=reasoning, grammar=_grammar
    )


def _grammar(tools: Sequence[ToolSpec]) -> CallGrammar:
    calls = tuple(
        CallSpelling(tool.name, f"{{{json.dumps(tool.name, ensure_ascii=False)}: ", "}")
        for tool in tools
    )
    return CallGrammar(CALLS, calls, f"{CALLS}[", f"]{CALLS_END}", ", ")
