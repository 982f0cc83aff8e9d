"""The MiniMax models, as data: M2 with invoke tags, M3 with nested ones, M1 with JSON lines."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from tokenwire.plugins.dialects._shared.family import Family, calls_grammar
from tokenwire.plugins.dialects._shared.format import CallStart, Format
from tokenwire.plugins.dialects._shared.json_call import json_calls
from tokenwire.plugins.dialects._shared.json_shape import JsonShape
from tokenwire.plugins.dialects._shared.tag_call import TagCall
from tokenwire.plugins.dialects._shared.tag_spelling import TagSpelling
from tokenwire.plugins.dialects.minimax.nested_call import NestedCall

__all__ = ("FAMILIES",)

INVOKE: Final = '<invoke name="'
M2_CALLS, M2_END = "<minimax:tool_call>", "</minimax:tool_call>"
M2: Final = TagSpelling(
    head=INVOKE,
    name_end='">',
    param='<parameter name="',
    key_end=('">',),
    value_end="</parameter>",
    end="</invoke>",
    close=M2_END,
    after=(M2_END, INVOKE),
)
SPACE: Final = "]<]minimax[>["
M3_CALLS, M3_END = f"{SPACE}<tool_call>", f"{SPACE}</tool_call>"
M1_CALLS, M1_END = "<tool_calls>", "</tool_calls>"
TURNS: Final = ("]~!b[", "]~b]", "[e~[")
STOPS: Final = ("[e~[",)
RESULTS: Final = ("<response>", "</response>")

FAMILIES: Final[Mapping[str, Family]] = {
    "minimax": Family(
        format=Format(
            think="<think>",
            think_end="</think>",
            calls=(
                CallStart(M2_CALLS, partial(TagCall, M2)),
                CallStart(INVOKE, partial(TagCall, M2, is_lone=True)),
            ),
            ends=(M2_END,),
        ),
        template_markers=(M2_CALLS, INVOKE),
        model_types=("minimax_m2",),
        markers=(*TURNS, *RESULTS),
        stop_strings=STOPS,
        grammar=calls_grammar(
            INVOKE + '{}">\n',
            "</invoke>\n",
            "minimax_xml",
            excludes=("</invoke>", M2_END),
            trigger=M2_CALLS,
            around=(M2_CALLS + "\n", M2_END),
        ),
    ),
    "minimax_m3": Family(
        format=Format(
            think="<mm:think>",
            think_end="</mm:think>",
            calls=(
                CallStart(M3_CALLS, partial(NestedCall, SPACE, close=M3_END)),
                CallStart(SPACE + INVOKE, partial(NestedCall, SPACE, close=M3_END, is_lone=True)),
            ),
            ends=(M3_END,),
            lead=0,
            trims="",
        ),
        template_markers=(SPACE, "<mm:think>", INVOKE),
        model_types=("minimax_m3_vl",),
        markers=(SPACE, *TURNS, *RESULTS, "]<]image[>[", "]<]video[>["),
        stop_strings=STOPS,
        grammar=calls_grammar(
            f'{SPACE}{INVOKE}{{}}">',
            f"{SPACE}</invoke>\n",
            "minimax_m3_xml",
            trigger=M3_CALLS,
            around=(M3_CALLS + "\n", M3_END),
        ),
    ),
    "minimax_m1": Family(
        format=Format(
            think="<think>",
            think_end="</think>",
            calls=(CallStart(M1_CALLS, json_calls(JsonShape(begin=M1_CALLS, end=M1_END))),),
            ends=(M1_END,),
        ),
        template_markers=("<beginning_of_sentence>", M1_CALLS),
        markers=("<begin_of_document>", "<beginning_of_sentence>", "<end_of_sentence>"),
        stop_strings=("<end_of_sentence>",),
        grammar=calls_grammar(
            '{"name": "{}", "arguments": ',
            "}\n",
            "json",
            trigger=M1_CALLS,
            around=(M1_CALLS + "\n", M1_END),
        ),
    ),
}
