"""Parsers of the Gemma families, as data: `gemma4`, `functiongemma`, and `gemma3` without calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tokenwire.core.dialogue import ToolSpec
from tokenwire.core.ports.dialect import CallGrammar, CallSpelling, ParserMaker, ReasoningStyle
from tokenwire.plugins.dialects._shared.format import CallStart, Format
from tokenwire.plugins.dialects._shared.maker import FormatMaker, GrammarMaker
from tokenwire.plugins.dialects.gemma.call import gemma_calls

__all__ = ("functiongemma_maker", "gemma3_maker", "gemma4_maker")

CALL, CALL_END, QUOTE = "<|tool_call>", "<tool_call|>", '<|"|>'
GEMMA4: Final = Format(
    "<|channel>thought",
    "<channel|>",
    calls=(CallStart(CALL, gemma_calls(QUOTE, CALL_END)),),
    ends=(CALL_END,),
    tokens=(QUOTE,),
    lead=0,
)
MARKERS: Final = (
    "<|turn>", "<turn|>", "<|think|>", "<|tool>", "<tool|>", "<|tool_response>", "<tool_response|>",
    QUOTE, "<|channel>",
)  # fmt: skip
STOPS: Final = ("<turn|>", "<|tool_response>")
"""The second begins the results of the calls that the answer ends with."""
OLD_CALL, OLD_CALL_END, OLD_QUOTE = "<start_function_call>", "<end_function_call>", "<escape>"
FUNCTIONGEMMA: Final = Format(
    calls=(CallStart(OLD_CALL, gemma_calls(OLD_QUOTE, OLD_CALL_END)),),
    ends=(OLD_CALL_END,),
    tokens=(OLD_QUOTE,),
    lead=0,
)
TURNS: Final = ("<start_of_turn>", "<end_of_turn>")
OLD_MARKERS: Final = (
    *TURNS, OLD_QUOTE, "<start_function_declaration>", "<end_function_declaration>",
    "<start_function_response>", "<end_function_response>",
)  # fmt: skip
OLD_STOPS: Final = ("<end_of_turn>", "<start_function_response>")


def gemma4_maker(reasoning: ReasoningStyle = "auto") -> ParserMaker:
    return FormatMaker(
        GEMMA4,
        markers=MARKERS,
        stop_strings=STOPS,
        reasoning=reasoning,
        grammar=_grammar(CALL, CALL_END),
    )


def functiongemma_maker() -> ParserMaker:
    return FormatMaker(
        FUNCTIONGEMMA,
        markers=OLD_MARKERS,
        stop_strings=OLD_STOPS,
        grammar=_grammar(OLD_CALL, OLD_CALL_END),
    )


def gemma3_maker(reasoning: ReasoningStyle = "auto") -> ParserMaker:
    """Gemma 1 to 3 were taught no way to write calls: `tool_code` fences are text."""
    return FormatMaker(Format(), markers=TURNS, stop_strings=TURNS[1:], reasoning=reasoning)


def _grammar(begin: str, end: str) -> GrammarMaker:
    """The arguments are no JSON, so that a grammar holds the name alone."""

    def grammar(tools: Sequence[ToolSpec]) -> CallGrammar:
        calls = tuple(
            CallSpelling(tool.name, f"{begin}call:{tool.name}{{", f"}}{end}", "free")
            for tool in tools
        )
        return CallGrammar(begin, calls)

    return grammar
