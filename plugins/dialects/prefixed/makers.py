"""The families' formats, as data, and their parser makers."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from tokenwire.core.ports.dialect import ParserMaker, ReasoningStyle
from tokenwire.plugins.dialects._shared.format import CallStart, Format
from tokenwire.plugins.dialects._shared.json_call import JsonShape, json_calls
from tokenwire.plugins.dialects._shared.json_grammar import json_grammar
from tokenwire.plugins.dialects._shared.maker import FormatMaker, GrammarMaker
from tokenwire.plugins.dialects.prefixed.solar import SOLAR, solar_grammar

__all__ = ("maker",)

THINK: Final = ("<think>", "</think>")
TURNS: Final = ("<|im_start|>", "<|im_end|>")


class Shape(Struct, frozen=True):
    """`markers`: beside the format's own, that client text must not make."""

    format: Format
    markers: tuple[str, ...]
    stops: tuple[str, ...]
    grammar: GrammarMaker


def maker(name: str, reasoning: ReasoningStyle) -> ParserMaker:
    shape = SHAPES[name]
    return FormatMaker(
        shape.format,
        markers=shape.markers,
        stop_strings=shape.stops,
        reasoning=reasoning,
        grammar=shape.grammar,
    )


def _format(
    *begins: str,
    end: str = "",
    think: tuple[str, str] = ("", ""),
    dropped: tuple[str, ...] = (),
) -> Format:
    """Calls behind each of `begins`, alone or in a list, up to `end`."""
    calls = json_calls(JsonShape(end=end, ids=("id",)))
    return Format(
        *think,
        calls=tuple(CallStart(begin, calls) for begin in begins),
        ends=(end,) if end else (),
        dropped=dropped,
    )


LISTED: Final = json_grammar("<tool_calls>[", "]</tool_calls>")
SHAPES: Final = {
    "apriel": Shape(
        _format(
            "<tool_calls>",
            end="</tool_calls>",
            think=("Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]"),
            dropped=("[END FINAL RESPONSE]",),
        ),
        ("<|begin_system|>", "<|begin_user|>", "<|begin_assistant|>", "<|begin_tool_result|>",
         "<|begin_content|>", "<|system|>", "<|user|>", "<|assistant|>", "<|tool_result|>",
         "<|content|>", "<|end|>"),
        ("<|end|>",),
        LISTED,
    ),
    "firefunction": Shape(
        _format("functools["),
        ("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
        ("<|eot_id|>",),
        json_grammar("functools[", "]"),
    ),
    "gigachat": Shape(
        _format(
            "<|function_call|>",
            "<|message_sep|>\n\nfunction call<|role_sep|>\n",
            "function call<|role_sep|>\n",
            dropped=("<|message_sep|>", "<|message_sep|>\n\n"),
        ),
        ("<|role_sep|>",),
        (),
        json_grammar("<|function_call|>"),
    ),
    "granite": Shape(
        _format("<|tool_call|>", think=THINK, dropped=("<response>", "</response>")),
        ("<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>"),
        ("<|end_of_text|>",),
        json_grammar("<|tool_call|>[", "]"),
    ),
    "granite_20b": Shape(
        _format("<function_call>"),
        (),
        ("<|endoftext|>",),
        json_grammar("<function_call> ", separator=""),
    ),
    "internlm": Shape(
        _format("<|action_start|><|plugin|>", end="<|action_end|>", think=THINK),
        TURNS,
        ("<|im_end|>",),
        json_grammar(
            "<|action_start|><|plugin|>\n", "<|action_end|>\n", arguments="parameters"
        ),
    ),
    "jamba": Shape(
        _format("<tool_calls>", end="</tool_calls>", think=THINK),
        ("<|bom|>", "<|eom|>"),
        ("<|eom|>",),
        LISTED,
    ),
    "longcat": Shape(
        _format(
            "<longcat_tool_call>",
            end="</longcat_tool_call>",
            think=("<longcat_think>", "</longcat_think>"),
        ),
        ("<longcat_system>", "<longcat_user>", "<longcat_assistant>", "</longcat_s>"),
        ("</longcat_s>",),
        json_grammar(
            "<longcat_tool_call>\n", "\n</longcat_tool_call>",
            separator="\n</longcat_tool_call>\n<longcat_tool_call>\n",
        ),
    ),
    "nemotron_nano_v2": Shape(
        _format("<TOOLCALL>", end="</TOOLCALL>", think=THINK),
        ("<SPECIAL_10>", "<SPECIAL_11>", "<SPECIAL_12>", "<TOOL_RESPONSE>", "</TOOL_RESPONSE>",
         "<AVAILABLE_TOOLS>", "</AVAILABLE_TOOLS>"),
        ("<SPECIAL_12>",),
        json_grammar("<TOOLCALL>[", "]</TOOLCALL>"),
    ),
    "phi4": Shape(
        _format("<|tool_call|>", "functools[", end="<|/tool_call|>"),
        ("<|system|>", "<|user|>", "<|assistant|>", "<|end|>", "<|tool|>", "<|/tool|>",
         "<|tool_response|>"),
        ("<|end|>",),
        json_grammar("<|tool_call|>[", "]<|/tool_call|>"),
    ),
    "solar": Shape(
        SOLAR,
        ("<|begin|>", "<|tool_response|>", "<|tool_response:begin|>", "<|tool_response:end|>"),
        ("<|calls|>",),
        solar_grammar,
    ),
}  # fmt: skip
"""By the family's name."""
