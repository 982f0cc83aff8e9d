"""Solar Open's frames: `<|think|>…<|end|>`, `<|content|>…<|end|>`, and calls with an id and a name.

Each frame begins with `<|begin|>assistant`, the first of which the prompt has written. A
call's id is the model's to choose.
"""

from __future__ import annotations

import re
from typing import Final

from tokenwire.core.dialogue import ToolSpec
from tokenwire.plugins.dialects._shared.call_reader import CallReader
from tokenwire.plugins.dialects._shared.family import calls_grammar
from tokenwire.plugins.dialects._shared.format import CallStart, Format
from tokenwire.plugins.dialects._shared.headed_call import HeadedCall, Header, HeaderShape

__all__ = ("SOLAR", "SOLAR_CALLS")

BEGIN: Final = "<|tool_call:begin|>"
NAME: Final = "<|tool_call:name|>"
ARGUMENTS: Final = "<|tool_call:args|>"
HEADER: Final = re.compile(rf"([^<]*){re.escape(NAME)}([^<]+){re.escape(ARGUMENTS)}\s*")
BEGINS: Final = re.compile(r"[^<\s]*(<[a-z_:|]*(>[^<\s]*(<[a-z_:|]*(>\s*)?)?)?)?")


def _split(header: str) -> Header | None:
    found = HEADER.fullmatch(header)
    return Header(found[2], found[1] or None) if found else None


HEADERS: Final = HeaderShape(BEGINS, _split)


def _call(tools: tuple[ToolSpec, ...]) -> CallReader:
    return HeadedCall(tools, HEADERS)


SOLAR_CALLS: Final = calls_grammar(
    BEGIN,
    "<|tool_call:end|>",
    "json",
    trigger="<|tool_calls|>",
    around=("<|tool_calls|>", "<|calls|>"),
    before=f"[A-Za-z0-9_-]{{1,64}}{re.escape(NAME)}{{}}{re.escape(ARGUMENTS)}",
)
SOLAR: Final = Format(
    "<|think|>",
    "<|end|>",
    calls=(CallStart(BEGIN, _call),),
    around=("<|tool_calls|>",),
    ends=("<|tool_call:end|>", "<|calls|>"),
    dropped=("<|begin|>assistant", "<|content|>", "<|end|>"),
    tokens=(NAME, ARGUMENTS),
    trims="",
    lead=0,
)
