"""The families that write a call as its name and `<arg_key>`, `<arg_value>` pairs, as data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Final

from tokenwire.core.ports.dialect import ParamSpelling
from tokenwire.plugins.dialects._shared.family import Family, calls_grammar
from tokenwire.plugins.dialects._shared.format import CallStart, Format
from tokenwire.plugins.dialects._shared.tag_call import TagCall
from tokenwire.plugins.dialects._shared.tag_spelling import TagSpelling

__all__ = ("FAMILIES", "hunyuan", "suffix_of")

BAR: Final = "\uff5c"
"""A full-width bar, as special tokens of Chinese families have it."""
START, END = f"<{BAR}start▁of▁sentence{BAR}>", f"<{BAR}end▁of▁sentence{BAR}>"
CALL, CALL_END = "<tool_call>", "</tool_call>"
SPELLING: Final = TagSpelling(
    param="<arg_key>",
    key_end=("</arg_key>", "<arg_value>"),
    value_end="</arg_value>",
    end=CALL_END,
    after=(CALL,),
)
SUFFIX: Final = re.compile(r"set HYTK = '([^'<>\\]*)'")
OPEN_SOURCE: Final = ":opensource"
PAIRS: Final = ("<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>")
RESPONSES: Final = ("<tool_response>", "</tool_response>")
GLM_TURNS: Final = (
    "[gMASK]",
    "<sop>",
    "<|endoftext|>",
    "<|system|>",
    "<|user|>",
    "<|assistant|>",
    "<|observation|>",
)
TEMPLATE: Final = (CALL, "<arg_key>", "<arg_value>")
GRAMMAR: Final = calls_grammar(
    "<tool_call>{}",
    CALL_END,
    "glm_xml",
    trigger=CALL,
    separator="\n",
    gap="\n",
    can_join=True,
    excludes=(CALL_END,),
)


def _format(*, lead: int = 1, trims: str = "\n") -> Format:
    return Format(
        think="<think>",
        think_end="</think>",
        calls=(CallStart(CALL, partial(TagCall, SPELLING)),),
        ends=(CALL_END,),
        tokens=PAIRS,
        lead=lead,
        trims=trims,
    )


def _family(
    format: Format,
    turns: tuple[str, ...],
    stops: tuple[str, ...],
    *template: str,
    model_types: tuple[str, ...] = (),
) -> Family:
    return Family(
        format=format,
        template_markers=(*TEMPLATE, *template),
        markers=(*PAIRS, *RESPONSES, *turns),
        stop_strings=stops,
        grammar=GRAMMAR,
        model_types=model_types,
    )


def suffix_of(template: str) -> str:
    """What the tags' names end in, by a chat template of Hy3."""
    found = SUFFIX.search(template)
    return found.group(1) if found else OPEN_SOURCE


def hunyuan(suffix: str = OPEN_SOURCE) -> Family:
    """Hy3, whose tags end in a suffix that the checkpoint's template names."""

    def tag(name: str) -> str:
        return f"<{name}{suffix}>"

    spelling = TagSpelling(
        name_end=tag("tool_sep"),
        param=tag("arg_key"),
        key_end=(tag("/arg_key"), tag("arg_value")),
        value_end=tag("/arg_value"),
        end=tag("/tool_call"),
        close=tag("/tool_calls"),
        after=(tag("tool_call"), tag("/tool_calls")),
    )
    inner = ("tool_sep", "arg_key", "/arg_key", "arg_value", "/arg_value")
    turns = ("hy_begin_of_sentence", "hy_eos", "hy_pad", "hy_User", "hy_Assistant",
             "reasoning_mode")  # fmt: skip
    results = ("tool_responses", "/tool_responses", "tool_response", "/tool_response")
    return Family(
        format=Format(
            think=tag("think"),
            think_end=tag("/think"),
            calls=(CallStart(tag("tool_call"), partial(TagCall, spelling)),),
            around=(tag("tool_calls"),),
            ends=(tag("/tool_call"), tag("/tool_calls")),
            tokens=tuple(map(tag, inner)),
            lead=0,
            trims="",
        ),
        template_markers=("<arg_key{}>", "<tool_sep{}>"),
        model_types=("hy_v3",),
        markers=(
            *map(tag, inner),
            *map(tag, results),
            *(f"<{BAR}{turn}{suffix}{BAR}>" for turn in turns),
        ),
        stop_strings=(f"<{BAR}hy_eos{suffix}{BAR}>",),
        grammar=calls_grammar(
            tag("tool_call") + "{}" + tag("tool_sep") + "\n",
            tag("/tool_call") + "\n",
            "parameters",
            trigger=tag("tool_calls"),
            around=(tag("tool_calls") + "\n", tag("/tool_calls")),
            param=ParamSpelling(
                f"{tag('arg_key')}{{}}{tag('/arg_key')}\n{tag('arg_value')}",
                tag("/arg_value") + "\n",
            ),
            excludes=(tag("/tool_call"), tag("/tool_calls")),
        ),
    )


FAMILIES: Final[Mapping[str, Family]] = {
    "glm": _family(
        _format(),
        GLM_TURNS,
        ("<|user|>", "<|observation|>", "<|endoftext|>"),
        model_types=("glm4_moe", "glm4_moe_lite"),
    ),
    "ling3": _family(
        _format(),
        ("<role>", "</role>", "<|role_end|>"),
        ("<|role_end|>",),
        "<role>ASSISTANT</role>",
    ),
    "laguna": _family(
        _format(lead=0, trims=""),
        ("<system>", "</system>", "<user>", "</user>", "<assistant>", "</assistant>"),
        ("</assistant>",),
        "<available_tools>",
    ),
    "laguna_xs": _family(
        _format(),
        ("<system>", "</system>", "<user>", "</user>", "<assistant>", "</assistant>"),
        ("</assistant>",),
        "<available_tools>",
        "<assistant>\\n",
    ),
    "spark": _family(
        _format(lead=0, trims=""),
        (START, END, "<|System|>", "<|User|>", "<|Bot|>", "<|Tool|>"),
        (END,),
        "<|Bot|>",
    ),
    "hunyuan": hunyuan(),
}
