"""Solar Open's frames: `<|think|>…<|end|>`, `<|content|>…<|end|>`, and calls with an id and a name.

Each frame begins with `<|begin|>assistant`, the first of which the prompt has written. No grammar:
a call's id is the model's to choose, and no spelling leaves room for one.
"""

from __future__ import annotations

import re
from typing import Final

from tokenwire.core.dialogue import ToolSpec
from tokenwire.plugins.dialects._shared.call_reader import CallReader
from tokenwire.plugins.dialects._shared.format import CallStart, Format
from tokenwire.plugins.dialects._shared.headed_call import HeadedCall, Header

__all__ = ("SOLAR",)

NAME: Final = "<|tool_call:name|>"
ARGUMENTS: Final = "<|tool_call:args|>"
HEADER: Final = re.compile(rf"(.*?){re.escape(NAME)}(.+){re.escape(ARGUMENTS)}\s*", re.DOTALL)


def _split(header: str) -> Header | None:
    found = HEADER.fullmatch(header)
    if found is None or not found[2].strip():
        return None
    return Header(found[2].strip(), found[1].strip() or None)


def _call(tools: tuple[ToolSpec, ...]) -> CallReader:
    return HeadedCall(tools, _split)


SOLAR: Final = Format(
    "<|think|>",
    "<|end|>",
    calls=(CallStart("<|tool_call:begin|>", _call),),
    around=("<|tool_calls|>",),
    ends=("<|tool_call:end|>", "<|calls|>"),
    dropped=("<|begin|>assistant", "<|content|>", "<|end|>"),
    tokens=(NAME, ARGUMENTS),
    trims="",
    lead=0,
)
