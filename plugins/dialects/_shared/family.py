"""A family that is all data: its format, its markers, and how `dialect: auto` knows it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from tokenwire.core.dialogue import ToolSpec
from tokenwire.core.ports.dialect import (
    ArgumentStyle,
    CallGrammar,
    CallSpelling,
    Dialect,
    ParamSpelling,
    ParserMaker,
    ReasoningStyle,
)
from tokenwire.plugins.dialects._shared.format import Format
from tokenwire.plugins.dialects._shared.maker import FormatMaker, GrammarMaker

__all__ = ("Family", "calls_grammar")


class Family(Struct, frozen=True):
    format: Format
    template_markers: tuple[str, ...]
    """Text that its chat templates hold, all of them."""
    markers: tuple[str, ...] = ()
    """Spellings beside the format's that client text must not be able to make."""
    stop_strings: tuple[str, ...] = ()
    grammar: GrammarMaker | None = None
    template: str = "chatml"
    """For checkpoints that bring no chat template."""
    model_types: tuple[str, ...] = ()
    """What config.json calls its models: see Dialect."""

    def maker(self, reasoning: ReasoningStyle) -> ParserMaker:
        return FormatMaker(
            self.format,
            markers=self.markers,
            stop_strings=self.stop_strings,
            reasoning=reasoning,
            grammar=self.grammar,
        )

    def dialect(self, name: str) -> Dialect:
        """Its parser has the same name."""
        return Dialect(
            name,
            self.template,
            parser=name,
            template_markers=self.template_markers,
            model_types=self.model_types,
        )


def calls_grammar(
    begin: str,
    end: str,
    style: ArgumentStyle,
    *,
    trigger: str,
    around: tuple[str, str] = ("", ""),
    separator: str = "",
    before: str = "",
    gap: str = "",
    param: ParamSpelling | None = None,
    excludes: tuple[str, ...] = (),
    can_join: bool = False,
) -> GrammarMaker:
    """Of a family that writes a call as `begin`, in which {} is the tool's name, its arguments,
    and `end`; all of an answer's calls stand between `around`. `before`: see CallSpelling; {} in it
    is the name too."""

    def spelling(name: str) -> CallSpelling:
        pattern = before.replace("{}", re.escape(name))
        return CallSpelling(
            name,
            begin.replace("{}", name),
            end,
            style,
            before=pattern,
            gap=gap,
            excludes=excludes,
            param=param,
        )

    def grammar(tools: Sequence[ToolSpec]) -> CallGrammar:
        calls = tuple(spelling(tool.name) for tool in tools)
        return CallGrammar(trigger, calls, *around, separator=separator, can_join=can_join)

    return grammar
