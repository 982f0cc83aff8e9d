"""Parser `generic`: a parser maker from a response template."""

from __future__ import annotations

from typing import Final, final

from tokenwire.core.ports.dialect import Parser, ParserMaker, ParserSetup, ReasoningStyle
from tokenwire.core.prompt import Phase, Piece
from tokenwire.plugins.dialects.generic.parser import RegionParser
from tokenwire.plugins.dialects.generic.spec import ResponseTemplate
from tokenwire.plugins.dialects.generic.tables import DROP, Tables

__all__ = ("GenericMaker",)

TAIL: Final = 4096
"""Characters of a prompt's end in which the assistant's turn begins."""


@final
class GenericMaker(ParserMaker):
    """What its anchors spell is what client text must not make."""

    def __init__(self, template: ResponseTemplate, *, reasoning: ReasoningStyle = "auto") -> None:
        self._tables = tables = Tables(template, thinks=reasoning != "none")
        self.reads_calls = "call" in tables.kinds
        self._is_implicit = reasoning == "implicit" and tables.thought != DROP
        anchors = (template.start, *tables.anchors)
        texts = [text.strip() for anchor in anchors for text in anchor.texts]
        self.markers = tuple(dict.fromkeys(filter(None, texts)))
        if tables.thought >= 0:
            field = tables.fields[tables.thought]
            if field.open and field.close and field.open.is_text and field.close.is_text:
                self.reasoning_start = field.open.texts[0]
                self.reasoning_end = field.close.texts[0]

    def parser(self, setup: ParserSetup) -> Parser:
        return RegionParser(setup, self._tables)

    def phase(self, prompt_text: str) -> Phase:
        tail = prompt_text[-TAIL:]
        at, begins = 0, -1
        while found := self._tables.start.find(tail, at, is_final=True):
            at = begins = found.end
        if begins < 0:
            return super().phase(prompt_text)
        parser = RegionParser(ParserSetup(), self._tables)
        parser.push(Piece(tail[begins:]))
        if self._is_implicit and not tail[begins:].strip():
            return "reasoning"
        return parser.phase
