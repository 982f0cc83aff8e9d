"""Parsers `pythonic`, `lfm2` and `olmo3`, as data: calls are written as Python.

Between markers any call counts; bare, an answer (or what follows a call) that begins with a list
whose first name is one of the tools. No grammar is given: none of the argument styles is Python's.
"""

from __future__ import annotations

from typing import Final

from tokenwire.core.dialogue import ToolSpec
from tokenwire.core.ports.dialect import ParserMaker, ReasoningStyle
from tokenwire.plugins.dialects._shared.call_reader import CallReader
from tokenwire.plugins.dialects._shared.format import CallStart, Format
from tokenwire.plugins.dialects._shared.json_call import JsonShape, json_calls
from tokenwire.plugins.dialects._shared.maker import FormatMaker
from tokenwire.plugins.dialects._shared.python_call import PythonCall
from tokenwire.plugins.dialects._shared.switch_call import SwitchCall

__all__ = ("lfm2_maker", "olmo3_maker", "pythonic_maker")

TURNS: Final = ("<|im_start|>", "<|im_end|>")
STOPS: Final = ("<|im_end|>",)
LFM2_MARKERS: Final = (
    *TURNS, "<|tool_list_start|>", "<|tool_list_end|>", "<|tool_response_start|>",
    "<|tool_response_end|>",
)  # fmt: skip
JSON: Final = json_calls(JsonShape(ids=("id",), between=" \t\r\n,]}"))


def pythonic_maker(reasoning: ReasoningStyle = "auto") -> ParserMaker:
    return FormatMaker(PYTHONIC, reasoning=reasoning)


def lfm2_maker(reasoning: ReasoningStyle = "auto") -> ParserMaker:
    return FormatMaker(LFM2, markers=LFM2_MARKERS, stop_strings=STOPS, reasoning=reasoning)


def olmo3_maker(reasoning: ReasoningStyle = "auto") -> ParserMaker:
    return FormatMaker(
        OLMO3, markers=(*TURNS, "<functions>"), stop_strings=STOPS, reasoning=reasoning
    )


def _bare(tools: tuple[ToolSpec, ...]) -> CallReader:
    return PythonCall(tools, is_known=True)


def _lax(tools: tuple[ToolSpec, ...]) -> CallReader:
    return PythonCall(tools, is_lax=True)


def _lfm2(tools: tuple[ToolSpec, ...]) -> CallReader:
    return SwitchCall(tools, JSON, _lax)


PYTHONIC: Final = Format("<think>", "</think>", bare=(CallStart("[", _bare),))
LFM2: Final = Format(
    "<think>",
    "</think>",
    calls=(CallStart("<|tool_call_start|>", _lfm2),),
    ends=("<|tool_call_end|>",),
)
OLMO3: Final = Format(
    "<think>",
    "</think>",
    calls=(CallStart("<function_calls>", PythonCall),),
    ends=("</function_calls>",),
)
