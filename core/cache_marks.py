"""Where a prompt's marked parts end: cache markers of a dialogue to numbers of ids. Pure.

By a second render in which every marked part ends with a private code point, put before its outer
white space. Where taking the points out does not give the first render, nobody can tell where the
parts end, and there are no marks. Knows no engine and no blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar, cast

from msgspec.structs import replace

from tokenwire.core.call import CacheMarker
from tokenwire.core.dialogue import (
    Dialogue,
    Document,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
)
from tokenwire.core.ports.tokenizer import Tokenizer
from tokenwire.core.prompt import CacheMark, Shields
from tokenwire.core.shield import PRIVATE, restored
from tokenwire.core.token_ids import TokenIds

__all__ = ("cache_marks",)

MOST: Final = 64
TOOLS: Final = -1

T = TypeVar("T")


def cache_marks(
    markers: Sequence[CacheMarker],
    dialogue: Dialogue,
    text: str,
    render: Callable[[Dialogue], str],
    *,
    pieces: Callable[[], Iterable[tuple[str, TokenIds]]],
    shields: Shields,
    tokenizer: Tokenizer,
) -> tuple[CacheMark, ...]:
    """By rising number of tokens. `text` is the render of `dialogue`, and `pieces` are its segments
    with their ids. A marker on what the template does not print stands where the last part before
    it in its turn ends; a turn of which nothing is printed has none."""
    points = _points(text, len(markers[:MOST]))
    by_point = dict(zip(points, markers, strict=False))
    if not by_point:
        return ()
    marked = render(_marked(dialogue, by_point))
    offsets: dict[str, int] = {}
    plain: list[str] = []
    start = length = 0
    for found in PRIVATE.finditer(marked):
        if found.group() in by_point:
            plain.append(marked[start : found.start()])
            length += found.start() - start
            offsets[found.group()] = length
            start = found.end()
    plain.append(marked[start:])
    # Why startswith: a script may have put a tail behind the first render.
    if not text.startswith("".join(plain)):
        return ()
    cut = sorted((offset, by_point[point].ttl_s) for point, offset in offsets.items())
    counts = _counts([offset for offset, _ in cut], pieces(), shields, tokenizer)
    return tuple(
        CacheMark(count, ttl_s) for count, (_, ttl_s) in zip(counts, cut, strict=True) if count
    )


def _points(text: str, count: int) -> list[str]:
    """Private code points that the text does not hold."""
    points: list[str] = []
    code = 0x10FFFD
    while len(points) < count and code > 0xF0000:
        if chr(code) not in text:
            points.append(chr(code))
        code -= 1
    return points


def _marked(dialogue: Dialogue, by_point: dict[str, CacheMarker]) -> Dialogue:
    turns = list(dialogue.turns)
    tools = dialogue.tools
    for point, marker in by_point.items():
        if marker.turn == TOOLS:
            tools = _first(tools, marker.part, point, _tool)
        elif 0 <= marker.turn < len(turns):
            turn = turns[marker.turn]
            turns[marker.turn] = replace(turn, parts=_first(turn.parts, marker.part, point, _part))
    return replace(dialogue, turns=tuple(turns), tools=tools)


def _first(
    items: tuple[T, ...], last: int, point: str, mark: Callable[[T, str], T]
) -> tuple[T, ...]:
    """Those up to `last` marked: the last of them that is printed says where they end."""
    return (*(mark(item, point) for item in items[: last + 1]), *items[last + 1 :])


def _part(part: Part, point: str) -> Part:
    match part:
        case Text() | Reasoning():
            return replace(part, text=_end(part.text, point))
        case Document() if part.text is not None:
            return replace(part, text=_end(part.text, point))
        case ToolCall():
            arguments = _json_end(part.arguments, point)
            return replace(part, name=_end(part.name, point), arguments=arguments)
        case ToolResult():
            inner = tuple(_part(each, point) for each in part.parts)
            return replace(part, parts=cast("tuple[Text, ...]", inner))
        case _:
            return part


def _tool(tool: ToolSpec, point: str) -> ToolSpec:
    return replace(
        tool,
        name=_end(tool.name, point),
        description=tool.description and _end(tool.description, point),
        parameters=tool.parameters and _json_end(tool.parameters, point),
    )


def _end(text: str, point: str) -> str:
    core = text.rstrip()
    return f"{core}{point}{text[len(core) :]}" if core else text


def _json_end(text: str, point: str) -> str:
    """Inside the last string of JSON text: its closing quote is the last quote there is."""
    before, quote, after = text.rpartition('"')
    return f"{before}{point}{quote}{after}" if quote else text


def _counts(
    offsets: Sequence[int],
    pieces: Iterable[tuple[str, TokenIds]],
    shields: Shields,
    tokenizer: Tokenizer,
) -> list[int]:
    """How many ids lie wholly before each offset (rising) into the text."""
    counts: list[int] = []
    length = ids_before = 0
    for text, ids in pieces:
        while len(counts) < len(offsets) and offsets[len(counts)] < length + len(text):
            inside = _whole_ids(text, offsets[len(counts)] - length, ids, shields, tokenizer)
            counts.append(ids_before + inside)
        length += len(text)
        ids_before += len(ids)
    return counts + [ids_before] * (len(offsets) - len(counts))


def _whole_ids(
    text: str, offset: int, ids: TokenIds, shields: Shields, tokenizer: Tokenizer
) -> int:
    """0 where the ids' bytes do not spell the text: rather too few than too many."""
    wanted = restored(text[:offset], shields).encode()
    at = 0
    for count, id_ in enumerate(ids):
        data = tokenizer.token_bytes(id_)
        if at + len(data) > len(wanted):
            return count
        if wanted[at : at + len(data)] != data:
            return 0
        at += len(data)
    return len(ids)
