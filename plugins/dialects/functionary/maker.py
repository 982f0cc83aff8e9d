"""Parsers `functionary_v3_1` (calls in function tags) and `functionary_v3_2` (messages)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from tokenwire.core.dialogue import ToolSpec
from tokenwire.core.ports.dialect import (
    CallGrammar,
    CallSpelling,
    Parser,
    ParserMaker,
    ParserSetup,
)
from tokenwire.plugins.dialects._shared.format import CallStart, Format
from tokenwire.plugins.dialects._shared.maker import FormatMaker
from tokenwire.plugins.dialects.functionary.messages import MessagesParser
from tokenwire.plugins.dialects.functionary.tagged_call import CodeReader, FunctionReader

__all__ = ("MessagesMaker", "tagged_maker")

TURNS: Final = ("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|eom_id|>")
STOPS: Final = ("<|eot_id|>", "<|eom_id|>")
CALL, CALL_END = "<function=", "</function>"
TAGGED: Final = Format(
    calls=(CallStart(CALL, FunctionReader), CallStart("<|python_tag|>", CodeReader)),
    ends=(CALL_END,),
    lead=0,
)


def tagged_maker() -> ParserMaker:
    return FormatMaker(TAGGED, markers=TURNS, stop_strings=STOPS, grammar=_grammar)


def _grammar(tools: Sequence[ToolSpec]) -> CallGrammar:
    calls = tuple(CallSpelling(tool.name, f"{CALL}{tool.name}>", CALL_END) for tool in tools)
    return CallGrammar(CALL, calls)


@final
class MessagesMaker(ParserMaker):
    """`>>>` is no marker for client text: it is no token, and every Python session has it."""

    markers = TURNS
    stop_strings = STOPS

    def parser(self, setup: ParserSetup) -> Parser:
        return MessagesParser(setup)

    def call_grammar(self, tools: Sequence[ToolSpec]) -> CallGrammar:
        """Of an answer that is calls from its beginning: the prompt has written the first `>>>`."""
        calls = tuple(CallSpelling(tool.name, f"{tool.name}\n", "") for tool in tools)
        return CallGrammar("", calls, separator=">>>")
