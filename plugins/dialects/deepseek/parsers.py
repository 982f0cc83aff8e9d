"""The parsers of DeepSeek's families as data: sections of calls (V3, V3.1, R1) and DSML (V3.2 on).

Reads nothing itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from tokenwire.core.dialogue import ToolSpec
from tokenwire.core.ports.dialect import CallGrammar, CallSpelling, ParserMaker, ReasoningStyle
from tokenwire.plugins.dialects._shared.format import CallStart, Format
from tokenwire.plugins.dialects._shared.headed_call import Header
from tokenwire.plugins.dialects._shared.maker import FormatMaker
from tokenwire.plugins.dialects._shared.marked_call import MarkedCall, MarkedShape
from tokenwire.plugins.dialects._shared.typed_call import TypedCall, TypedSpelling
from tokenwire.plugins.dialects.deepseek.spelling import (
    DSML,
    EOS,
    REMINDER,
    SECTION,
    SYSTEM,
    THINK,
    THINK_END,
    TURNS,
    V4,
    V32,
    Dsml,
)

__all__ = ("dsml_parser", "section_parser")

CALLS, CALLS_END, CALL, CALL_END, SEP = SECTION[:5]
RESULTS = ("<tool_result>", "</tool_result>", "<function_results>", "</function_results>")


def section_parser(reasoning: ReasoningStyle, *, has_fence: bool) -> ParserMaker:
    """V3 and R1 (`has_fence`: `function`, the name, the arguments in a fence) or V3.1 (the name,
    then the arguments). Either reads both; they differ in the grammar."""
    shape = MarkedShape(SEP, (CALL_END, CALLS_END), _header, has_line=True)
    format = Format(
        think=THINK,
        think_end=THINK_END,
        calls=(CallStart(CALL, partial(MarkedCall, shape)),),
        around=(CALLS,),
        ends=(CALLS_END, CALL_END),
        lead=0,
    )
    grammar = _fenced_grammar if has_fence else _section_grammar
    return FormatMaker(
        format,
        markers=(*TURNS, *SECTION),
        stop_strings=(EOS,),
        reasoning=reasoning,
        grammar=grammar,
    )


def _header(text: str) -> Header | None:
    name = text.strip()
    return Header(name) if name and "<" not in name and "\n" not in name else None


def _section_grammar(tools: Sequence[ToolSpec]) -> CallGrammar:
    calls = tuple(CallSpelling(t.name, f"{CALL}{t.name}{SEP}", CALL_END) for t in tools)
    return CallGrammar(CALLS, calls, begin=CALLS, end=CALLS_END)


def _fenced_grammar(tools: Sequence[ToolSpec]) -> CallGrammar:
    calls = tuple(
        CallSpelling(t.name, f"{CALL}function{SEP}{t.name}\n```json\n", f"\n```{CALL_END}")
        for t in tools
    )
    return CallGrammar(CALLS, calls, begin=CALLS, end=CALLS_END, separator="\n")


def dsml_parser(dsml: Dsml, reasoning: ReasoningStyle) -> ParserMaker:
    """V3.2, V4 or V4.1, by how they spell their tags."""
    spelling = TypedSpelling(
        head=re.compile(r'\s+name="([^\n<]+?)">'),
        param=dsml.open("parameter"),
        attributes=re.compile(r'\s+name="(.*?)(?:"\s+string="(true|false))?">', re.DOTALL),
        text_type="true",
        value_end=dsml.close("parameter"),
        end=dsml.close("invoke"),
    )
    section = f"{dsml.open(dsml.section)}>"
    # Why both: a model that was trained on its predecessor's traces may write its tag.
    others = [f"{d.open(d.section)}>" for d in (V32, V4) if d.space == dsml.space and d != dsml]
    ends = [dsml.close(dsml.section), *(f"</{other[1:]}" for other in others)]
    format = Format(
        think=THINK,
        think_end=THINK_END,
        calls=(CallStart(dsml.open("invoke"), partial(TypedCall, spelling)),),
        around=(section, *others),
        ends=tuple(ends),
        lead=2,
    )
    return FormatMaker(
        format,
        markers=(*TURNS, SYSTEM, REMINDER, DSML, *RESULTS),
        stop_strings=(EOS,),
        reasoning=reasoning,
        grammar=partial(_dsml_grammar, dsml),
    )


def _dsml_grammar(dsml: Dsml, tools: Sequence[ToolSpec]) -> CallGrammar:
    section = f"{dsml.open(dsml.section)}>"
    calls = tuple(
        CallSpelling(
            tool.name,
            f'{dsml.open("invoke")} name="{tool.name}">\n',
            f"{dsml.close('invoke')}\n",
            "deepseek_v4_1_xml" if dsml.space else "deepseek_xml",
        )
        for tool in tools
    )
    return CallGrammar(section, calls, begin=f"{section}\n", end=dsml.close(dsml.section))
