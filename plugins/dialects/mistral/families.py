"""The Mistral models, as data. Both families read both shapes; they differ in the grammar.

`[TOOL_CALLS]` begins a JSON list of calls, or one call with its name before `[ARGS]` and, in some
releases, its id between. Text, reasoning and calls follow each other without white space, so all of
it belongs to the text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from tokenwire.core.dialogue import ToolSpec
from tokenwire.plugins.dialects._shared.call_reader import CallReader
from tokenwire.plugins.dialects._shared.family import Family, calls_grammar
from tokenwire.plugins.dialects._shared.format import CallStart, Format
from tokenwire.plugins.dialects._shared.headed_call import HeadedCall, Header, HeaderShape
from tokenwire.plugins.dialects._shared.json_call import json_calls
from tokenwire.plugins.dialects._shared.json_grammar import json_grammar
from tokenwire.plugins.dialects._shared.json_shape import JsonShape
from tokenwire.plugins.dialects._shared.switch_call import SwitchCall

__all__ = ("FAMILIES",)

CALLS: Final = "[TOOL_CALLS]"
HEADER: Final = re.compile(r"\s*([^\s\[\]{}]+)\s*(?:\[CALL_ID\]([^\[\]{}]*))?(?:\[ARGS\])?\s*")
BEGINS: Final = re.compile(r"\s*([^\s\[\]{}]+\s*(\[[A-Z_]*(\][^\[\]{}]*(\[[A-Z]*(\]\s*)?)?)?)?)?")
LIST: Final = json_calls(JsonShape(ids=("id",), between=" \t\r\n,]}"))
MARKERS: Final = (
    "[INST]", "[/INST]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[AVAILABLE_TOOLS]",
    "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]", "[TOOL_CONTENT]", "[/TOOL_RESULTS]", "[ARGS]",
    "[CALL_ID]", "[IMG]", "<s>", "</s>",
)  # fmt: skip


def _split(header: str) -> Header | None:
    found = HEADER.fullmatch(header)
    return Header(found[1], (found[2] or "").strip() or None) if found else None


HEADERS: Final = HeaderShape(BEGINS, _split)


def _headed(tools: tuple[ToolSpec, ...]) -> CallReader:
    return HeadedCall(tools, HEADERS)


def _either(tools: tuple[ToolSpec, ...]) -> CallReader:
    return SwitchCall(tools, LIST, _headed)


MISTRAL: Final = Format(
    "[THINK]",
    "[/THINK]",
    calls=(CallStart(CALLS, _either),),
    tokens=("[ARGS]", "[CALL_ID]"),
    trims="",
    lead=0,
)
ID: Final = "[a-zA-Z0-9]{9}"
FAMILIES: Final[Mapping[str, Family]] = {
    "mistral": Family(
        format=MISTRAL,
        template_markers=(CALLS, "[ARGS]"),
        markers=MARKERS,
        stop_strings=("</s>",),
        grammar=calls_grammar(
            f"{CALLS}{{}}",
            "",
            "json",
            trigger=CALLS,
            before=rf"(\[CALL_ID\]{ID})?\[ARGS\]",
        ),
        template="plain",
        model_types=("mistral3", "ministral3"),
    ),
    "mistral_json": Family(
        format=MISTRAL,
        template_markers=(CALLS,),
        markers=MARKERS,
        stop_strings=("</s>",),
        grammar=json_grammar(f"{CALLS}[", "]", behind=f'(, "id": "{ID}")?'),
        template="plain",
    ),
}
