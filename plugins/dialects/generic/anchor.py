"""Where a region of an answer begins or ends: some texts, or a pattern. Stateless."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, final

from tokenwire.core.errors import ConfigError
from tokenwire.plugins.dialects._shared.tags import PARTIAL, Tags
from tokenwire.plugins.dialects.generic.pattern import Program, compile_pattern
from tokenwire.plugins.dialects.generic.search import Found, search

__all__ = ("Anchor",)


@final
class Anchor:
    """`texts`: what it spells, as far as that is known without a text (of a pattern, its literal
    beginning); `literals`: all literal text in it. `firsts`: the characters that it may begin with;
    "" where that can be any. `names`: of its groups."""

    __slots__ = ("_program", "_tags", "firsts", "literals", "names", "texts")

    def __init__(self, tags: Tags | None, program: Program | None) -> None:
        self._tags: Final = tags
        self._program: Final = program
        if program is not None:
            self.texts: tuple[str, ...] = (program.prefix,) if program.prefix else ()
            self.firsts, self.literals = program.prefix[:1], program.literals
            self.names: tuple[str, ...] = program.groups
        else:
            assert tags is not None
            self.texts, self.firsts, self.names = tags.markers, tags.firsts, ()
            self.literals = tags.markers

    @property
    def is_text(self) -> bool:
        """Whether it is one of `texts`, and no pattern."""
        return self._tags is not None

    @classmethod
    def of_texts(cls, texts: Sequence[str]) -> Anchor:
        if not any(text[0].isspace() for text in texts):
            return cls(Tags(texts), None)
        longest = sorted(set(texts), key=lambda text: (-len(text), text))
        return cls(None, compile_pattern("|".join(map(re.escape, longest))))

    @classmethod
    def of_pattern(cls, pattern: str) -> Anchor:
        """Raises ConfigError for a pattern that cannot be read."""
        program = compile_pattern(pattern)
        found = search(program, "\0", 0, is_final=True)
        if found is not None and found.end == 0:
            raise ConfigError(f"response_template: the pattern {pattern!r} fits everywhere")
        return cls(None, program)

    def find(self, text: str, start: int, *, is_final: bool = False) -> Found | None:
        """The first at or after `start`, which may still be pending."""
        if self._program is not None:
            found = search(self._program, text, start, is_final=is_final)
            # Why: the end of the text ends every region anyway.
            is_empty = found is not None and found.start == found.end and not found.is_pending
            return None if is_empty else found
        assert self._tags is not None
        at, marker = self._tags.find(text, start, is_final=is_final)
        if not marker:
            return None
        if marker == PARTIAL:
            return Found(at, len(text), is_pending=True)
        return Found(at, at + len(marker))
