"""Models whose calls are JSON behind a marker of their own, as data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tokenwire.plugins.dialects._shared.family import Family
from tokenwire.plugins.dialects._shared.format import CallStart, Format
from tokenwire.plugins.dialects._shared.json_call import json_calls
from tokenwire.plugins.dialects._shared.json_grammar import json_grammar
from tokenwire.plugins.dialects._shared.json_shape import JsonShape
from tokenwire.plugins.dialects.prefixed.solar import SOLAR, SOLAR_CALLS

__all__ = ("FAMILIES",)

THINK: Final = ("<think>", "</think>")
TURNS: Final = ("<|im_start|>", "<|im_end|>")


def _format(
    *begins: str,
    end: str = "",
    think: tuple[str, str] = ("", ""),
    dropped: tuple[str, ...] = (),
    is_tight: bool = False,
) -> Format:
    """Calls behind each of `begins`, alone or in a list, up to `end`. `is_tight`: no white space
    belongs to the markers."""
    calls = json_calls(JsonShape(end=end, ids=("id",)))
    return Format(
        *think,
        calls=tuple(CallStart(begin, calls) for begin in begins),
        ends=(end,) if end else (),
        dropped=dropped,
        trims="" if is_tight else "\n",
        lead=0 if is_tight else 1,
    )


LISTED: Final = json_grammar("<tool_calls>[", "]</tool_calls>")
FAMILIES: Final[Mapping[str, Family]] = {
    "apriel": Family(
        format=_format(
            "<tool_calls>",
            end="</tool_calls>",
            think=("Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]"),
            dropped=("[END FINAL RESPONSE]",),
        ),
        template_markers=("<tool_calls>[", "[BEGIN FINAL RESPONSE]"),
        markers=(
            "<|begin_system|>",
            "<|begin_user|>",
            "<|begin_assistant|>",
            "<|begin_tool_result|>",
            "<|begin_content|>",
            "<|system|>",
            "<|user|>",
            "<|assistant|>",
            "<|tool_result|>",
            "<|content|>",
            "<|end|>",
        ),
        stop_strings=("<|end|>",),
        grammar=LISTED,
        template="plain",
        model_types=("apriel",),
    ),
    "firefunction": Family(
        format=_format("functools["),
        template_markers=("functools[",),
        markers=("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
        stop_strings=("<|eot_id|>",),
        grammar=json_grammar("functools[", "]"),
        template="plain",
    ),
    "gigachat": Family(
        format=_format(
            "<|function_call|>",
            "<|message_sep|>\n\nfunction call<|role_sep|>\n",
            "function call<|role_sep|>\n",
            dropped=("<|message_sep|>", "<|message_sep|>\n\n"),
            is_tight=True,
        ),
        template_markers=("<|role_sep|>", "<|message_sep|>"),
        markers=("<|role_sep|>",),
        stop_strings=(),
        grammar=json_grammar("<|function_call|>"),
        template="plain",
    ),
    "granite": Family(
        format=_format("<|tool_call|>", think=THINK, dropped=("<response>", "</response>")),
        template_markers=("<|tool_call|>", "<|start_of_role|>"),
        markers=("<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>"),
        stop_strings=("<|end_of_text|>",),
        grammar=json_grammar("<|tool_call|>[", "]"),
        template="plain",
    ),
    "granite_20b": Family(
        format=_format("<function_call>"),
        template_markers=(),
        markers=(),
        stop_strings=("<|endoftext|>",),
        grammar=json_grammar("<function_call> ", separator=""),
        template="plain",
    ),
    "internlm": Family(
        format=_format("<|action_start|><|plugin|>", end="<|action_end|>", think=THINK),
        template_markers=("<|action_start|>", "<|plugin|>"),
        markers=TURNS,
        stop_strings=("<|im_end|>",),
        grammar=json_grammar(
            "<|action_start|><|plugin|>\n", "<|action_end|>\n", arguments="parameters"
        ),
        model_types=("internlm2", "internlm3"),
    ),
    "jamba": Family(
        format=_format("<tool_calls>", end="</tool_calls>", think=THINK),
        template_markers=("<tool_calls>[",),
        markers=("<|bom|>", "<|eom|>"),
        stop_strings=("<|eom|>",),
        grammar=LISTED,
        template="plain",
        model_types=("jamba", "hunyuan_v1_moe"),
    ),
    "longcat": Family(
        format=_format(
            "<longcat_tool_call>",
            end="</longcat_tool_call>",
            think=("<longcat_think>", "</longcat_think>"),
        ),
        template_markers=("<longcat_tool_call>",),
        markers=("<longcat_system>", "<longcat_user>", "<longcat_assistant>", "</longcat_s>"),
        stop_strings=("</longcat_s>",),
        grammar=json_grammar(
            "<longcat_tool_call>\n",
            "\n</longcat_tool_call>",
            separator="\n</longcat_tool_call>\n<longcat_tool_call>\n",
        ),
        template="plain",
        model_types=("longcat_flash",),
    ),
    "nemotron_nano_v2": Family(
        format=_format("<TOOLCALL>", end="</TOOLCALL>", think=THINK),
        template_markers=("<TOOLCALL>", "<SPECIAL_11>"),
        markers=(
            "<SPECIAL_10>",
            "<SPECIAL_11>",
            "<SPECIAL_12>",
            "<TOOL_RESPONSE>",
            "</TOOL_RESPONSE>",
            "<AVAILABLE_TOOLS>",
            "</AVAILABLE_TOOLS>",
        ),
        stop_strings=("<SPECIAL_12>",),
        grammar=json_grammar("<TOOLCALL>[", "]</TOOLCALL>"),
        template="plain",
    ),
    "phi4": Family(
        format=_format("<|tool_call|>", "functools[", end="<|/tool_call|>"),
        template_markers=("<|tool|>", "<|/tool|>"),
        markers=(
            "<|system|>",
            "<|user|>",
            "<|assistant|>",
            "<|end|>",
            "<|tool|>",
            "<|/tool|>",
            "<|tool_response|>",
        ),
        stop_strings=("<|end|>",),
        grammar=json_grammar("<|tool_call|>[", "]<|/tool_call|>"),
        template="plain",
    ),
    "solar": Family(
        format=SOLAR,
        template_markers=("<|tool_call:begin|>", "<|tool_call:args|>"),
        markers=(
            "<|begin|>",
            "<|tool_response|>",
            "<|tool_response:begin|>",
            "<|tool_response:end|>",
        ),
        stop_strings=("<|calls|>",),
        grammar=SOLAR_CALLS,
        template="plain",
        model_types=("solar_open",),
    ),
}
