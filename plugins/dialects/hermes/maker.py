"""Parsers `hermes` (reasoning and tool calls) and `think` (reasoning only)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final, final

from msgspec.structs import replace

from tokenwire.core.dialogue import ToolSpec
from tokenwire.core.ports.dialect import (
    CallGrammar,
    CallSpelling,
    Parser,
    ParserMaker,
    ParserSetup,
)
from tokenwire.plugins.dialects.hermes.markers import CALL, CALL_END, THINK, THINK_END
from tokenwire.plugins.dialects.hermes.parser import HermesParser

__all__ = ("HermesMaker",)

TURNS: Final = ("<|im_start|>", "<|im_end|>")
RESPONSES: Final = ("<tool_response>", "</tool_response>")


@final
class HermesMaker(ParserMaker):
    """`thinks`: whether think blocks are recognised; `calls`: whether tool calls are."""

    stop_strings = ("<|im_end|>",)

    def __init__(self, *, thinks: bool = True, calls: bool = True) -> None:
        self._thinks = thinks
        self._calls = calls
        self.reasoning_start = THINK if thinks else ""
        self.reasoning_end = THINK_END if thinks else ""
        self.markers = (
            *TURNS,
            *((THINK, THINK_END) if thinks else ()),
            *((CALL, CALL_END, *RESPONSES) if calls else ()),
        )

    def call_grammar(self, tools: Sequence[ToolSpec]) -> CallGrammar | None:
        if not self._calls:
            return None
        calls = tuple(
            CallSpelling(
                tool.name, f'{CALL}\n{{"name": {_json(tool.name)}, "arguments": ', f"}}\n{CALL_END}"
            )
            for tool in tools
        )
        return CallGrammar(CALL, calls, separator="\n")

    def parser(self, setup: ParserSetup) -> Parser:
        if not self._calls and setup.parse_tools:
            setup = replace(setup, parse_tools=False)
        return HermesParser(setup, thinks=self._thinks)


def _json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
