"""The parsers of Kimi's families as data: sections of calls (K2) and frames (K3). Reads nothing
itself."""

from __future__ import annotations

import re
from functools import partial
from typing import Final

from tokenwire.core.ports.dialect import ParserMaker, ReasoningStyle
from tokenwire.plugins.dialects._shared.family import calls_grammar
from tokenwire.plugins.dialects._shared.format import CallStart, Format
from tokenwire.plugins.dialects._shared.headed_call import Header
from tokenwire.plugins.dialects._shared.maker import FormatMaker
from tokenwire.plugins.dialects._shared.marked_call import MarkedCall, MarkedShape
from tokenwire.plugins.dialects._shared.typed_call import TypedCall, TypedSpelling

__all__ = ("k2_parser", "k3_parser")

CALLS, CALLS_END = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
CALL, CALL_END = "<|tool_call_begin|>", "<|tool_call_end|>"
SEP: Final = "<|tool_call_argument_begin|>"
TURNS: Final = ("<|im_system|>", "<|im_user|>", "<|im_assistant|>", "<|im_middle|>", "<|im_end|>")
MEDIA: Final = ("<|media_start|>", "<|media_content|>", "<|media_pad|>", "<|media_end|>")
NUMBER: Final = "[0-9]{1,9}"
HEADER: Final = re.compile(r"(?:functions\.)?([^\s<>]+?)(:\d+)?")

OPEN, CLOSE, END_TAG = "<|open|>", "<|close|>", "<|sep|>"
END_OF_MESSAGE: Final = "<|end_of_msg|>"
IMAGE: Final = "<|kimi_image_placeholder|>"


def k2_parser(reasoning: ReasoningStyle) -> ParserMaker:
    """K2, and K2-Thinking with its think blocks. A call's id is the one that the model wrote."""
    shape = MarkedShape(SEP, (CALL_END, CALLS_END), _header)
    format = Format(
        think="<think>",
        think_end="</think>",
        calls=(CallStart(CALL, partial(MarkedCall, shape)),),
        around=(CALLS,),
        ends=(CALLS_END, CALL_END),
        lead=0,
    )
    markers = (*TURNS, *MEDIA, SEP)
    return FormatMaker(
        format,
        markers=markers,
        stop_strings=("<|im_end|>",),
        reasoning=reasoning,
        grammar=calls_grammar(
            f"{CALL}functions.{{}}:",
            CALL_END,
            "json",
            trigger=CALLS,
            around=(CALLS, CALLS_END),
            before=NUMBER + re.escape(SEP),
        ),
    )


def _header(text: str) -> Header | None:
    """`functions.NAME:7`: the name, and all of it the id; less than that is a name without one."""
    written = text.strip()
    found = HEADER.fullmatch(written)
    if found is None:
        return None
    return Header(found.group(1), written if found.group(2) else None)


def k3_parser(reasoning: ReasoningStyle) -> ParserMaker:
    """K3: everything stands in frames, what is visible in `response`, calls in `tools`."""
    spelling = TypedSpelling(
        head=re.compile(rf'\s+tool="([^"]+)"(?:\s+\w+="[^"]*")*{re.escape(END_TAG)}'),
        param=f"{OPEN}argument",
        attributes=re.compile(rf'\s+key="([^"]*)"(?:\s+type="(\w+)")?{re.escape(END_TAG)}'),
        value_end=_close("argument"),
        end=_close("call"),
        escapes={"&quot;": '"', "&amp;": "&"},
        whole=(f'{OPEN}json type="object"{END_TAG}', _close("json")),
    )
    format = Format(
        think=_open("think"),
        think_end=_close("think"),
        calls=(CallStart(f"{OPEN}call", partial(TypedCall, spelling)),),
        around=(_open("tools"),),
        ends=(_close("tools"),),
        dropped=(_open("response"), _close("response"), _close("message")),
        trims="",
        lead=0,
    )
    return FormatMaker(
        format,
        markers=(OPEN, CLOSE, END_TAG, END_OF_MESSAGE, IMAGE),
        stop_strings=(END_OF_MESSAGE,),
        reasoning=reasoning,
        grammar=calls_grammar(
            f'{OPEN}call tool="{{}}" index="',
            _close("call"),
            "kimi_k3_xml",
            trigger=_open("tools"),
            around=(_open("tools"), _close("tools")),
            before=f'{NUMBER}"{re.escape(END_TAG)}',
        ),
    )


def _open(tag: str) -> str:
    return f"{OPEN}{tag}{END_TAG}"


def _close(tag: str) -> str:
    return f"{CLOSE}{tag}{END_TAG}"
