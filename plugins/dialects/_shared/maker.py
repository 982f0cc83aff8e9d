"""A parser maker from a format as data: the way to write a family without a parser of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias, final

from msgspec.structs import replace

from tokenwire.core.dialogue import ToolSpec
from tokenwire.core.ports.dialect import (
    CallGrammar,
    Parser,
    ParserMaker,
    ParserSetup,
    ReasoningStyle,
)
from tokenwire.core.prompt import Phase
from tokenwire.plugins.dialects._shared.format import Format
from tokenwire.plugins.dialects._shared.tables import Tables
from tokenwire.plugins.dialects._shared.tagged import TaggedParser

__all__ = ("FormatMaker", "GrammarMaker")

THINK: Final = ("<think>", "</think>")
GrammarMaker: TypeAlias = Callable[[Sequence[ToolSpec]], CallGrammar | None]


@final
class FormatMaker(ParserMaker):
    """`markers`: spellings beside the format's own that client text must not make (turns, results).
    `grammar`: how calls are written, for engines that hold answers to a grammar."""

    def __init__(
        self,
        format: Format,
        *,
        markers: Sequence[str] = (),
        stop_strings: Sequence[str] = (),
        reasoning: ReasoningStyle = "auto",
        grammar: GrammarMaker | None = None,
    ) -> None:
        if reasoning == "none":
            format = replace(format, think="", think_end="")
        elif reasoning != "auto" and not format.think_end:
            format = replace(format, think=THINK[0], think_end=THINK[1])
        self._is_implicit = reasoning == "implicit"
        self._grammar = grammar
        self._tables = tables = Tables(format)
        self.reads_calls = bool(tables.starts)
        self.stop_strings = tuple(stop_strings)
        self.reasoning_start, self.reasoning_end = format.think, format.think_end
        self.markers = tuple(dict.fromkeys((*markers, *tables.parts)))

    def parser(self, setup: ParserSetup) -> Parser:
        return TaggedParser(setup, self._tables)

    def call_grammar(self, tools: Sequence[ToolSpec]) -> CallGrammar | None:
        return self._grammar(tools) if self._grammar else None

    def phase(self, prompt_text: str) -> Phase:
        end = prompt_text.rstrip()
        if self._is_implicit:
            return "content" if end.endswith(self.reasoning_end) else "reasoning"
        if self.reasoning_start and end.endswith(self.reasoning_start.rstrip()):
            return "reasoning"
        return "content"
