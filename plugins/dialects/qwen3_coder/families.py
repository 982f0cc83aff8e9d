"""The families that write calls as `<function=f><parameter=a>…`, as data.

Most put a call into a tag of its own, and some models leave that tag out: `<function=` alone is a
call too where it names a tool that there is.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from msgspec.structs import replace

from tokenwire.core.ports.dialect import ParamSpelling
from tokenwire.plugins.dialects._shared.family import Family, calls_grammar
from tokenwire.plugins.dialects._shared.format import CallStart, Format
from tokenwire.plugins.dialects._shared.tag_call import TagCall
from tokenwire.plugins.dialects._shared.tag_spelling import TagSpelling

__all__ = ("FAMILIES",)

HEAD: Final = "<function="
CHATML: Final = ("<|im_start|>", "<|im_end|>", "<tool_response>", "</tool_response>")

QWEN: Final = TagSpelling(
    head=HEAD,
    name_end=">",
    param="<parameter=",
    key_end=(">",),
    value_end="</parameter>",
    end="</function>",
    close="</tool_call>",
    after=("</tool_call>", "<tool_call>", HEAD),
    trim=True,
    python=True,
)
SEED: Final = replace(
    QWEN,
    close="</seed:tool_call>",
    after=("</seed:tool_call>", "<seed:tool_call>", HEAD),
    trim=False,
)
MINICPM_HEAD: Final = '<function name="'
MINICPM: Final = TagSpelling(
    head=MINICPM_HEAD,
    name_end='">',
    param='<param name="',
    key_end=('">',),
    value_end="</param>",
    end="</function>",
    after=(MINICPM_HEAD,),
    cdata=("<![CDATA[", "]]>"),
    python=True,
)


def _calls(begin: str, spelling: TagSpelling) -> tuple[CallStart, ...]:
    """A call in its tag, and one without."""
    return (
        CallStart(begin, partial(TagCall, spelling)),
        CallStart(spelling.head, partial(TagCall, spelling, is_lone=True)),
    )


QWEN_FORMAT: Final = Format(
    think="<think>",
    think_end="</think>",
    calls=_calls("<tool_call>", QWEN),
    ends=("</tool_call>",),
    lead=2,
)
QWEN_FAMILY: Final = Family(
    format=QWEN_FORMAT,
    template_markers=("<tool_call>", "<function=", "<parameter="),
    model_types=("qwen3_5", "qwen3_5_moe"),
    markers=CHATML,
    stop_strings=("<|im_end|>",),
    grammar=calls_grammar(
        "<tool_call>\n<function={}>\n",
        "</function>\n</tool_call>",
        "qwen_xml",
        excludes=("</function>",),
        trigger="<tool_call>\n<function=",
        separator="\n",
        can_join=True,
    ),
)
SEED_FAMILY: Final = Family(
    format=Format(
        think="<seed:think>",
        think_end="</seed:think>",
        calls=_calls("<seed:tool_call>", SEED),
        ends=("</seed:tool_call>",),
        lead=2,
    ),
    template_markers=("<seed:tool_call>", "<function=", "<parameter="),
    model_types=("seed_oss",),
    markers=("<seed:bos>", "<seed:eos>", "<seed:pad>", "<seed:cot_budget_reflect>",
             "</seed:cot_budget_reflect>"),
    stop_strings=("<seed:eos>",),
    grammar=calls_grammar(
        "<seed:tool_call>\n<function={}>\n",
        "</function>\n</seed:tool_call>",
        "qwen_xml",
        excludes=("</function>",),
        trigger="<seed:tool_call>\n<function=",
        separator="\n",
    ),
)  # fmt: skip
MINICPM_FAMILY: Final = Family(
    format=Format(
        think="<think>",
        think_end="</think>",
        calls=(CallStart(MINICPM_HEAD, partial(TagCall, MINICPM, is_lone=True)),),
    ),
    template_markers=('<function name="', '<param name="'),
    markers=CHATML,
    stop_strings=("<|im_end|>",),
    grammar=calls_grammar(
        '<function name="{}">',
        "</function>",
        "parameters",
        trigger='<function name="',
        separator="\n",
        param=ParamSpelling('<param name="{}">', "</param>", has_python_words=True),
        excludes=("</function>",),
    ),
)

FAMILIES: Final[Mapping[str, Family]] = {
    "qwen3_coder": QWEN_FAMILY,
    # Why its own: nothing stands between its text and a call, so a newline there is text.
    "step3p5": replace(
        QWEN_FAMILY,
        format=replace(QWEN_FORMAT, lead=0),
        model_types=(),
        template_markers=(
            *QWEN_FAMILY.template_markers, "<|im_start|>tool_response", "'observation'",
        ),
    ),
    "seed_oss": SEED_FAMILY,
    "minicpm5": MINICPM_FAMILY,
}  # fmt: skip
