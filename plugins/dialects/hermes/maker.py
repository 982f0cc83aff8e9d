"""Parsers `hermes` (reasoning and tool calls) and `think` (reasoning only), as data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from tokenwire.core.dialogue import ToolSpec
from tokenwire.core.ports.dialect import CallGrammar, CallSpelling, ParserMaker, ReasoningStyle
from tokenwire.plugins.dialects._shared.format import CallStart, Format
from tokenwire.plugins.dialects._shared.json_call import json_calls
from tokenwire.plugins.dialects._shared.json_shape import JsonShape
from tokenwire.plugins.dialects._shared.maker import FormatMaker

__all__ = ("hermes_maker", "think_maker")

TURNS: Final = ("<|im_start|>", "<|im_end|>")
RESPONSES: Final = ("<tool_response>", "</tool_response>")
THINK: Final = Format("<think>", "</think>")
CALL: Final = JsonShape("<tool_call>", "</tool_call>")
HERMES: Final = Format(
    "<think>",
    "</think>",
    calls=(CallStart("<tool_call>", json_calls(CALL)),),
    ends=("</tool_call>",),
)
STOPS: Final = ("<|im_end|>",)


def hermes_maker(reasoning: ReasoningStyle = "auto") -> ParserMaker:
    return FormatMaker(
        HERMES,
        markers=(*TURNS, *RESPONSES),
        stop_strings=STOPS,
        reasoning=reasoning,
        grammar=_grammar,
    )


def think_maker(reasoning: ReasoningStyle = "auto") -> ParserMaker:
    return FormatMaker(THINK, markers=TURNS, stop_strings=STOPS, reasoning=reasoning)


def _grammar(tools: Sequence[ToolSpec]) -> CallGrammar:
    return CallGrammar(
        "<tool_call>",
        tuple(
            CallSpelling(
                tool.name,
                f'<tool_call>\n{{"name": {json.dumps(tool.name, ensure_ascii=False)},'
                ' "arguments": ',
                "}\n</tool_call>",
            )
            for tool in tools
        ),
        separator="\n",
        can_join=True,
    )
