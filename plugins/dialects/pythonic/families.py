"""Models that write calls as Python, as data.

Between markers any call counts; bare, an answer (or what follows a call) that begins with a list
whose first name is one of the tools.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tokenwire.core.dialogue import ToolSpec
from tokenwire.core.ports.dialect import ParamSpelling
from tokenwire.plugins.dialects._shared.call_reader import CallReader
from tokenwire.plugins.dialects._shared.family import Family, calls_grammar
from tokenwire.plugins.dialects._shared.format import CallStart, Format
from tokenwire.plugins.dialects._shared.json_call import json_calls
from tokenwire.plugins.dialects._shared.json_shape import JsonShape
from tokenwire.plugins.dialects._shared.maker import GrammarMaker
from tokenwire.plugins.dialects._shared.python_call import PythonCall
from tokenwire.plugins.dialects._shared.switch_call import SwitchCall

__all__ = ("FAMILIES",)

TURNS: Final = ("<|im_start|>", "<|im_end|>")
STOPS: Final = ("<|im_end|>",)
LFM2_MARKERS: Final = (
    *TURNS, "<|tool_list_start|>", "<|tool_list_end|>", "<|tool_response_start|>",
    "<|tool_response_end|>",
)  # fmt: skip
JSON: Final = json_calls(JsonShape(ids=("id",), between=" \t\r\n,]}"))


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
ARGUMENTS: Final = ParamSpelling("{}=", "", separator=", ", is_bare=False, has_python_words=True)
OLMO3: Final = Format(
    "<think>",
    "</think>",
    calls=(CallStart("<function_calls>", PythonCall),),
    ends=("</function_calls>",),
)


def _grammar(
    begin: str, end: str, *, separator: str = ", ", is_marked: bool = True
) -> GrammarMaker:
    return calls_grammar(
        "{}(",
        ")",
        "parameters",
        trigger=begin if is_marked else "",
        around=(begin, end),
        separator=separator,
        param=ARGUMENTS,
    )


FAMILIES: Final[Mapping[str, Family]] = {
    "lfm2": Family(
        format=LFM2,
        template_markers=("List of tools: ", "<|im_start|>"),
        markers=LFM2_MARKERS,
        stop_strings=STOPS,
        grammar=_grammar("<|tool_call_start|>[", "]<|tool_call_end|>"),
        model_types=("lfm2", "lfm2_moe"),
    ),
    "olmo3": Family(
        format=OLMO3,
        template_markers=("<function_calls>", "<|im_start|>"),
        markers=(*TURNS, "<functions>", "</functions>"),
        stop_strings=STOPS,
        grammar=_grammar("<function_calls>\n", "\n</function_calls>", separator="\n"),
        model_types=("olmo3",),
    ),
    "pythonic": Family(
        format=PYTHONIC,
        template_markers=(),
        grammar=_grammar("[", "]", is_marked=False),
        template="plain",
    ),
}
