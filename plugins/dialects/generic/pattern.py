"""Compiles the regular expressions that response templates use to small programs. Runs none.

The subset: literals, classes, dots (any character), escapes, groups (named or not), alternation,
the quantifiers (greedy or lazy), and `$`, `\\Z`. What looks around, refers back or sets flags is
refused: with it a text could be searched neither in linear time nor in pieces.
"""

from __future__ import annotations

import re
from typing import Final, Literal, final

from msgspec import Struct

from tokenwire.core.errors import ConfigError

__all__ = ("Op", "Program", "compile_pattern")

MAX_OPS: Final = 2_000
MAX_REPEATS: Final = 200
SIMPLE: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a", "0": "\0"}
CLASSES: Final = "sSdDwW"
BOUNDS: Final[dict[str, tuple[int, int | None]]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}


class Op(Struct, frozen=True):
    """One step. `char`: one character, `text` itself or one that `set` matches; `split`: both `to`
    and `other`, the first preferred; `save`: a group begins or ends here; `end`: of the text."""

    kind: Literal["char", "split", "jump", "save", "end", "match"]
    text: str = ""
    set: re.Pattern[str] | None = None
    to: int = 0
    other: int = 0
    is_end: bool = False


class Program(Struct, frozen=True):
    ops: tuple[Op, ...]
    groups: tuple[str, ...]
    prefix: str
    """Literal text that every match begins with."""
    literals: tuple[str, ...]
    """All its runs of literal text."""


def compile_pattern(pattern: str) -> Program:
    """Raises ConfigError for what is not in the subset."""
    return _Compiler(pattern).program()


@final
class _Compiler:
    """Recursive descent; each method gives the ops of its part, addressed from its own start."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._groups: list[str] = []

    def program(self) -> Program:
        ops = self._either()
        if self._at < len(self._pattern):
            raise self._error("an unopened ')'")
        prefix = ""
        for op in ops:
            if op.kind == "char" and op.text:
                prefix += op.text
            elif op.kind != "save":
                break
        runs = "".join(op.text if op.kind == "char" and op.text else "\0" for op in ops)
        literals = tuple(filter(None, runs.split("\0")))
        return Program((*ops, Op("match")), tuple(self._groups), prefix, literals)

    def _error(self, what: str) -> ConfigError:
        return ConfigError(
            f"response_template: the pattern {self._pattern!r} has {what} at {self._at}, which the"
            " dialect 'generic' cannot read; another dialect or parser can be configured"
        )

    def _peek(self, text: str) -> bool:
        return self._pattern.startswith(text, self._at)

    def _take(self) -> str:
        if self._at >= len(self._pattern):
            raise self._error("an early end")
        self._at += 1
        return self._pattern[self._at - 1]

    def _either(self) -> list[Op]:
        first = self._sequence()
        if not self._peek("|"):
            return first
        self._at += 1
        second = self._either()
        split = Op("split", to=1, other=len(first) + 2)
        return self._sized([split, *_moved(first, 1), Op("jump", to=len(first) + 2 + len(second)),
                            *_moved(second, len(first) + 2)])  # fmt: skip

    def _sequence(self) -> list[Op]:
        ops: list[Op] = []
        while self._at < len(self._pattern) and not (self._peek("|") or self._peek(")")):
            ops += _moved(self._repeated(self._atom()), len(ops))
        return self._sized(ops)

    def _sized(self, ops: list[Op]) -> list[Op]:
        if len(ops) > MAX_OPS:
            raise self._error("too many repeats")
        return ops

    def _atom(self) -> list[Op]:
        character = self._take()
        match character:
            case "(":
                return self._group()
            case "[":
                return [self._class()]
            case "\\":
                return [self._escape()]
            case ".":
                return [Op("char", set=re.compile(".", re.DOTALL))]
            case "$":
                return [Op("end")]
            case "^" | "*" | "+" | "?":
                self._at -= 1
                raise self._error(f"a {character!r}")
        return [Op("char", character)]

    def _group(self) -> list[Op]:
        name = ""
        if self._peek("?:"):
            self._at += 2
        elif self._peek("?P<"):
            end = self._pattern.find(">", self._at)
            name = self._pattern[self._at + 3 : end]
            if end < 0 or not name.isidentifier():
                raise self._error("a group without a name")
            self._groups.append(name)
            self._at = end + 1
        elif self._peek("?"):
            raise self._error(f"a group {self._pattern[self._at - 1 : self._at + 3]!r}")
        inner = self._either()
        if self._take() != ")":
            raise self._error("an unclosed group")
        if not name:
            return inner
        return [Op("save", name), *_moved(inner, 1), Op("save", name, is_end=True)]

    def _escape(self) -> Op:
        character = self._take()
        if character in CLASSES:
            return Op("char", set=re.compile(f"\\{character}"))
        if character == "Z":
            return Op("end")
        if character in SIMPLE:
            return Op("char", SIMPLE[character])
        if character.isalnum():
            raise self._error(f"an escape \\{character}")
        return Op("char", character)

    def _class(self) -> Op:
        start = self._at - 1
        end = start + 1 + self._peek("^")
        while True:
            # Why: a bracket that comes first stands for itself.
            is_first = end == start + 1 + (self._pattern[start + 1 : start + 2] == "^")
            if end >= len(self._pattern):
                raise self._error("an unclosed '['")
            if self._pattern[end] == "]" and not is_first:
                break
            end += 2 if self._pattern[end] == "\\" else 1
        self._at = end + 1
        try:
            return Op("char", set=re.compile(self._pattern[start : end + 1]))
        except re.error as error:
            raise self._error(f"a class that is none ({error})") from error

    def _repeated(self, ops: list[Op]) -> list[Op]:
        if self._at >= len(self._pattern):
            return ops
        bounds = BOUNDS.get(self._pattern[self._at])
        if bounds is not None:
            self._at += 1
        elif found := re.compile(r"\{(\d{1,4})?(,)?(\d{1,4})?\}").match(self._pattern, self._at):
            least, comma, most = (str(part or "") for part in found.groups())
            if not least and not most:
                return ops
            self._at = found.end()
            bounds = (int(least or 0), int(most) if most else (None if comma else int(least)))
        else:
            return ops
        is_lazy = self._peek("?")
        self._at += is_lazy
        if self._peek("+") or self._peek("*"):
            raise self._error("a quantifier of a quantifier")
        return self._sized(self._times(ops, bounds[0], bounds[1], is_lazy=is_lazy))

    def _times(self, ops: list[Op], least: int, most: int | None, *, is_lazy: bool) -> list[Op]:
        if max(least, most or 0) > MAX_REPEATS:
            raise self._error(f"more than {MAX_REPEATS} repeats")
        found: list[Op] = []
        for _ in range(least):
            found += _moved(ops, len(found))
        if most is None:
            at, behind = len(found), len(found) + len(ops) + 2
            found.append(_split(at + 1, behind, is_lazy=is_lazy))
            found += [*_moved(ops, at + 1), Op("jump", to=at)]
            return found
        end = len(found) + (most - least) * (len(ops) + 1)
        for _ in range(most - least):
            found.append(_split(len(found) + 1, end, is_lazy=is_lazy))
            found += _moved(ops, len(found))
        return found


def _split(inside: int, behind: int, *, is_lazy: bool) -> Op:
    return Op("split", to=behind, other=inside) if is_lazy else Op("split", to=inside, other=behind)


def _moved(ops: list[Op], by: int) -> list[Op]:
    """`ops` for a place that many ops later."""
    return [
        Op(op.kind, op.text, op.set, op.to + by, op.other + by, op.is_end)
        if op.kind in ("split", "jump")
        else op
        for op in ops
    ]
