"""What a model's template and parser make of what a request can ask of them. Pure; no protocol.

One account for both that tell of it: capability tables and the reply header that lists what nothing
used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, final

from tokenwire.core.dialogue import Dialogue, ToolSpec
from tokenwire.core.ports.dialect import ParserMaker, Template

__all__ = ("DIALECT", "DialectPowers")

DIALECT: Final = "dialect:"
EFFORTS: Final = ("reasoning_effort", "thinking_effort")
SWITCHES: Final = ("enable_thinking", "thinking", "thinking_mode", "thinking_budget")
"""Names by which published templates take reasoning settings."""
PROBE: Final = (ToolSpec("f", parameters='{"type":"object"}'),)
"""A plain function: a family that cannot hold this one to a grammar can hold none."""


@final
class DialectPowers:
    """Made once a model; `can` takes what `FieldRule.needs` names with "dialect:"."""

    def __init__(self, template: Template, parser: ParserMaker) -> None:
        self._read = template.variables
        self._calls = parser.reads_calls
        self._thinks = bool(parser.reasoning_start) or self._any(SWITCHES)
        self._powers = frozenset(
            f"{DIALECT}{name}"
            for name, is_there in (
                ("tools", self._any(("tools",)) and self._calls),
                ("calls", self._calls),
                ("call_grammar", parser.call_grammar(PROBE) is not None),
                ("documents", self._any(("documents",))),
                ("template_args", self._read is None or bool(set(self._read) - {"tools"})),
                ("reasoning_effort", self._any(EFFORTS)),
                ("thinking", self._thinks),
                ("reasoning_block", bool(parser.reasoning_start)),
                ("open_end", template.is_open_ended),
            )
            if is_there
        )

    def can(self, need: str) -> bool:
        return need in self._powers

    def unread(self, dialogue: Dialogue) -> tuple[str, ...]:
        """What the dialogue asks of template and parser, and neither does."""
        return tuple(self._unread(dialogue))

    def _unread(self, dialogue: Dialogue) -> Iterator[str]:
        for key in dialogue.template_args:
            if not self._any((key,)):
                yield f"template_args.{key}"
        choice, asked = dialogue.tool_choice, dialogue.reasoning
        is_answered = self._calls or choice.mode == "none"
        if dialogue.tools and not (self._any(("tools",)) and is_answered):
            yield "tools"
        if dialogue.tools and not choice.parallel and not is_answered:
            yield "parallel_tool_calls"
        if asked.effort not in (None, "none") and not self._any(EFFORTS):
            yield "reasoning_effort"
        if asked.mode in ("on", "adaptive") and not self._thinks:
            yield "reasoning_mode"

    def _any(self, names: tuple[str, ...]) -> bool:
        """Whether the template reads one of them; yes where nobody knows what it reads."""
        return self._read is None or any(name in self._read for name in names)
