"""Parsers `hermes` (reasoning and tool calls) and `think` (reasoning only)."""

from __future__ import annotations

from typing import Final, final

from msgspec.structs import replace

from tokenwire.core.ports.dialect import Parser, ParserMaker, ParserSetup
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

    def parser(self, setup: ParserSetup) -> Parser:
        if not self._calls and setup.parse_tools:
            setup = replace(setup, parse_tools=False)
        return HermesParser(setup, thinks=self._thinks)
