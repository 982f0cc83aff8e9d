"""Searches text that comes in pieces for a compiled pattern, in time linear in the text. Stateless.

Finds what a backtracking search would find: the leftmost match, and of those that begin there the
one that the pattern prefers. All ways through the pattern are followed at once, in the order of
preference (a Pike machine), so that a match is final as soon as no better way is open.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from msgspec import Struct

from tokenwire.plugins.dialects.generic.pattern import Program

__all__ = ("Found", "search")

MAX_PENDING: Final = 4096
"""Characters that one match may take before it is given up."""
Saves: TypeAlias = tuple[tuple[str, int, int], ...]
Thread: TypeAlias = tuple[int, int, Saves]
"""An op, where the match began, groups."""


class Found(Struct, frozen=True):
    """`is_pending`: more text decides whether there is a match from `start` on, and which."""

    start: int
    end: int
    groups: Mapping[str, str] = {}
    is_pending: bool = False


def search(program: Program, text: str, start: int, *, is_final: bool) -> Found | None:
    """The first match at or after `start`. `is_final`: the text ends here."""
    while True:
        found = _search(program, text, start, is_final=is_final)
        if found is None or not found.is_pending or len(text) - found.start <= MAX_PENDING:
            return found
        start = found.start + 1


def _search(program: Program, text: str, start: int, *, is_final: bool) -> Found | None:
    threads: list[Thread] = []
    best: Found | None = None
    for at in range(start, len(text) + 1):
        if best is None and _may_begin(program, text, at):
            _add(program, threads, (0, at, ()), at, len(text) - at if is_final else -1)
        following: list[Thread] = []
        for thread in threads:
            op = program.ops[thread[0]]
            if op.kind == "match":
                best = Found(thread[1], at, _groups(text, thread[2]))
                break  # Why: all others are less preferred.
            if at == len(text):
                if not is_final:
                    return Found(thread[1], at, is_pending=True)
            elif op.set.match(text[at]) if op.set else op.text == text[at]:
                left = len(text) - at - 1 if is_final else -1
                _add(program, following, (thread[0] + 1, *thread[1:]), at + 1, left)
        threads = following
        if not threads and best is not None:
            break
    return best


def _may_begin(program: Program, text: str, at: int) -> bool:
    prefix = program.prefix
    return text.startswith(prefix, at) or (
        len(text) - at < len(prefix) and prefix.startswith(text[at:])
    )


def _add(program: Program, threads: list[Thread], first: Thread, at: int, left: int) -> None:
    """Follow what takes no character. `left`: how many come; -1: nobody knows."""
    seen = {thread[0] for thread in threads}
    waiting = [first]
    while waiting:
        thread = waiting.pop()
        number, start, saves = thread
        if number in seen:
            continue
        seen.add(number)
        op = program.ops[number]
        match op.kind:
            case "jump":
                waiting.append((op.to, start, saves))
            case "split":
                waiting += [(op.other, start, saves), (op.to, start, saves)]
            case "save":
                waiting.append((number + 1, start, _saved(saves, op.text, at, is_end=op.is_end)))
            case "end":
                if left == 0:
                    waiting.append((number + 1, start, saves))
            case _:
                threads.append(thread)


def _saved(saves: Saves, name: str, at: int, *, is_end: bool) -> Saves:
    begun = next((save[1] for save in saves if save[0] == name), at)
    others = tuple(save for save in saves if save[0] != name)
    return (*others, (name, begun, at)) if is_end else (*others, (name, at, -1))


def _groups(text: str, saves: Saves) -> dict[str, str]:
    return {name: text[start:end] for name, start, end in saves if end >= start}
