"""The Llama models, and answers that are bare JSON, as data.

Llama writes a call as bare JSON, the whole of its answer, so only an answer (or what follows a
call) that begins with an object of the right keys, naming one of the tools, is one. Any other JSON
is text, as it stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tokenwire.core.dialogue import ToolSpec
from tokenwire.plugins.dialects._shared.call_reader import CallReader
from tokenwire.plugins.dialects._shared.family import Family
from tokenwire.plugins.dialects._shared.format import CallStart, Format
from tokenwire.plugins.dialects._shared.json_call import json_calls
from tokenwire.plugins.dialects._shared.json_grammar import json_grammar
from tokenwire.plugins.dialects._shared.json_shape import JsonShape
from tokenwire.plugins.dialects._shared.python_call import PythonCall
from tokenwire.plugins.dialects._shared.switch_call import SwitchCall

__all__ = ("FAMILIES",)

BETWEEN: Final = " \t\r\n;,]}"
BARE: Final = json_calls(JsonShape(ids=("id",), between=BETWEEN, extra=("type",), is_strict=True))
MARKED: Final = json_calls(JsonShape(ids=("id",), between=BETWEEN))
LLAMA3_MARKERS: Final = (
    "<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|eom_id|>",
)  # fmt: skip
LLAMA4_MARKERS: Final = (
    "<|begin_of_text|>", "<|header_start|>", "<|header_end|>", "<|eot|>", "<|eom|>",
)  # fmt: skip


def _built_in(tools: tuple[ToolSpec, ...]) -> CallReader:
    """`brave_search.call(query="...")`; other code in that place is text."""
    return PythonCall(tools, is_known=True, method=".call")


def _python(tools: tuple[ToolSpec, ...]) -> CallReader:
    return PythonCall(tools, is_known=True)


def _tagged(tools: tuple[ToolSpec, ...]) -> CallReader:
    return SwitchCall(tools, MARKED, _built_in)


def _list(tools: tuple[ToolSpec, ...]) -> CallReader:
    return SwitchCall(tools, BARE, _python)


ARRAY: Final = Format(bare=(CallStart("[", BARE), CallStart("{", BARE)))
LLAMA3: Final = Format(
    calls=(CallStart("<|python_tag|>", _tagged),), bare=(CallStart("{", BARE),), trims="", lead=0
)
LLAMA4: Final = Format(
    calls=(CallStart("<|python_start|>", _tagged),),
    bare=(CallStart("{", BARE), CallStart("[", _list)),
    ends=("<|python_end|>",),
)
OBJECTS: Final = json_grammar("", separator="; ", arguments="parameters", trigger='{"name": ')
FAMILIES: Final[Mapping[str, Family]] = {
    "json_array": Family(
        format=ARRAY,
        template_markers=(),
        grammar=json_grammar("[", "]", trigger='[{"name": '),
        template="plain",
    ),
    "llama3_json": Family(
        format=LLAMA3,
        template_markers=("<|eot_id|>", "ipython", '"parameters": '),
        markers=LLAMA3_MARKERS,
        stop_strings=("<|eot_id|>", "<|eom_id|>"),
        grammar=OBJECTS,
        template="plain",
    ),
    "llama4": Family(
        format=LLAMA4,
        template_markers=("<|header_start|>", "<|python_start|>"),
        markers=LLAMA4_MARKERS,
        stop_strings=("<|eot|>", "<|eom|>"),
        grammar=OBJECTS,
        template="plain",
        model_types=("llama4", "Llama4ForConditionalGeneration"),
    ),
}
