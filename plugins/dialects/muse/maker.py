"""Parser `muse`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from tokenwire.core.dialogue import ToolSpec
from tokenwire.core.ports.dialect import (
    CallGrammar,
    ParamSpelling,
    Parser,
    ParserMaker,
    ParserSetup,
)
from tokenwire.plugins.dialects._shared.family import calls_grammar
from tokenwire.plugins.dialects.muse.markers import CALLS, CALLS_END, FRAME, INVOKE, SPELLING
from tokenwire.plugins.dialects.muse.parser import MuseParser

__all__ = ("MuseMaker",)


@final
class MuseMaker(ParserMaker):
    """Has no spelling of reasoning of its own: a message to oneself is reasoning."""

    markers = (
        *FRAME, CALLS, CALLS_END, INVOKE, SPELLING.end, SPELLING.param, SPELLING.value_end,
        "<tool_output", "</tool_output>",
    )  # fmt: skip
    stop_strings = ("<|eot|>",)

    def parser(self, setup: ParserSetup) -> Parser:
        return MuseParser(setup)

    def call_grammar(self, tools: Sequence[ToolSpec]) -> CallGrammar | None:
        begin = f'{CALLS}\n{INVOKE}{{}}">\n'
        return calls_grammar(
            begin,
            f"{SPELLING.end}\n{CALLS_END}",
            "parameters",
            trigger=CALLS,
            param=ParamSpelling(
                f'{SPELLING.param}{{}}">',
                f"{SPELLING.value_end}\n",
            ),
            excludes=(SPELLING.end, CALLS_END, *FRAME),
        )(tools)
