"""Parsers `cohere` (Command R7B, Command A, North) and `command_r` (Command R+), as data."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final

from tokenwire.core.dialogue import ToolSpec
from tokenwire.core.ports.dialect import CallGrammar, CallSpelling, ParserMaker, ReasoningStyle
from tokenwire.plugins.dialects._shared.format import CallStart, Format
from tokenwire.plugins.dialects._shared.json_call import json_calls
from tokenwire.plugins.dialects._shared.json_shape import JsonShape
from tokenwire.plugins.dialects._shared.maker import FormatMaker

__all__ = ("cohere_maker", "command_r_maker")

TURNS: Final = (
    "<|START_OF_TURN_TOKEN|>", "<|END_OF_TURN_TOKEN|>", "<|SYSTEM_TOKEN|>", "<|USER_TOKEN|>",
    "<|CHATBOT_TOKEN|>",
)  # fmt: skip
STOPS: Final = ("<|END_OF_TURN_TOKEN|>",)
RESULTS: Final = ("<|START_TOOL_RESULT|>", "<|END_TOOL_RESULT|>")
ACTION, ACTION_END = "<|START_ACTION|>", "<|END_ACTION|>"
NAMES, ARGUMENTS = ("tool_name",), ("parameters",)
CALL: Final = JsonShape(ACTION, ACTION_END, NAMES, ARGUMENTS, ids=("tool_call_id",))
ANSWERS: Final = ("<|START_RESPONSE|>", "<|START_TEXT|>")
COHERE: Final = Format(
    "<|START_THINKING|>",
    "<|END_THINKING|>",
    calls=(CallStart(ACTION, json_calls(CALL)),),
    ends=(ACTION_END,),
    dropped=(*ANSWERS, "<|END_RESPONSE|>", "<|END_TEXT|>"),
    answers=ANSWERS,
    trims="",
    lead=0,
)
FENCE: Final = "```"
OLD_CALL: Final = JsonShape("", FENCE, NAMES, ARGUMENTS)
OLD_ACTION: Final = ("Action:\n```json", "Action: ```json", "Action:```json")
COMMAND_R: Final = Format(
    calls=tuple(CallStart(action, json_calls(OLD_CALL)) for action in OLD_ACTION), ends=(FENCE,)
)


def cohere_maker(reasoning: ReasoningStyle = "auto") -> ParserMaker:
    return FormatMaker(
        COHERE,
        markers=(*TURNS, *RESULTS),
        stop_strings=STOPS,
        reasoning=reasoning,
        grammar=_grammar,
    )


def command_r_maker() -> ParserMaker:
    return FormatMaker(COMMAND_R, markers=TURNS, stop_strings=STOPS, grammar=_old_grammar)


def _grammar(tools: Sequence[ToolSpec]) -> CallGrammar:
    """A call's id counts up over the conversation."""
    calls = tuple(
        CallSpelling(
            tool.name,
            '{"tool_call_id": "',
            "}",
            before=f'[0-9]{{1,9}}", "tool_name": {_pattern(tool.name)}, "parameters": ',
        )
        for tool in tools
    )
    return CallGrammar(ACTION, calls, f"{ACTION}[\n    ", f"\n]{ACTION_END}", ",\n    ")


def _old_grammar(tools: Sequence[ToolSpec]) -> CallGrammar:
    begin = f"{OLD_ACTION[0]}\n[\n    "
    calls = tuple(
        CallSpelling(
            tool.name,
            f'{{\n        "tool_name": {_json(tool.name)},\n        "parameters": ',
            "\n    }",
        )
        for tool in tools
    )
    return CallGrammar(OLD_ACTION[0], calls, begin, f"\n]{FENCE}", ",\n    ")


def _json(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def _pattern(name: str) -> str:
    return re.escape(_json(name))
