"""Parser `harmony`: channels of reasoning and text, calls as messages to functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from tokenwire.core.dialogue import ToolSpec
from tokenwire.core.ports.dialect import (
    CallGrammar,
    CallSpelling,
    Parser,
    ParserMaker,
    ParserSetup,
)
from tokenwire.core.prompt import Phase
from tokenwire.plugins.dialects.harmony.header import channel_of, recipient_of
from tokenwire.plugins.dialects.harmony.markers import (
    ALL,
    CALL,
    CHANNEL,
    CONSTRAIN,
    END,
    MESSAGE,
    RETURN,
    START,
)
from tokenwire.plugins.dialects.harmony.parser import HarmonyParser

__all__ = ("HarmonyMaker",)

TRIGGER = f"{CHANNEL}commentary to=functions."


@final
class HarmonyMaker(ParserMaker):
    """Reasoning is what stands on the channel `analysis`: it needs no setting."""

    markers = ALL
    stop_strings = (RETURN, CALL)
    reasoning_start = f"{CHANNEL}analysis{MESSAGE}"
    reasoning_end = END

    def parser(self, setup: ParserSetup) -> Parser:
        return HarmonyParser(setup)

    def call_grammar(self, tools: Sequence[ToolSpec]) -> CallGrammar | None:
        calls = tuple(
            CallSpelling(tool.name, f"{TRIGGER}{tool.name} {CONSTRAIN}json{MESSAGE}", CALL)
            for tool in tools
        )
        return CallGrammar(TRIGGER, calls)

    def phase(self, prompt_text: str) -> Phase:
        """Reasoning where the prompt's last message is an open one on `analysis`."""
        last = prompt_text[prompt_text.rfind(START) + 1 :]
        header, message, body = last.rpartition(MESSAGE)
        is_open = bool(message) and not any(marker in body for marker in (END, RETURN, CALL))
        if is_open and channel_of(header) == "analysis" and not recipient_of(header):
            return "reasoning"
        return "content"
