"""Client text stays text: hides spellings of special tokens behind private code points.

Each forbidden spelling in a client's string is replaced by one private code point that the request
does not hold; the tokenizer puts the spelling back as plain text. So are beginnings of a spelling
at the end of a string, since a template may put two strings side by side. Knows no template.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar, cast, final

import msgspec
from msgspec import Struct
from msgspec.structs import fields, replace

from tokenwire.core.dialogue import Dialogue
from tokenwire.core.errors import RequestError
from tokenwire.core.joints import Joint
from tokenwire.core.prompt import Shields

__all__ = ("PRIVATE", "Shield", "map_strings", "restored")

T = TypeVar("T")

PRIVATE = re.compile("[\U000f0000-\U0010fffd]")
"""Supplementary private use planes (Unicode 15 and 16)."""


def restored(text: str, shields: Shields) -> str:
    """`text` with the hidden spellings put back."""
    if not shields:
        return text
    return PRIVATE.sub(lambda match: shields.get(match.group(), match.group()), text)


# Fields whose text no template prints, and fields that hold JSON text.
OPAQUE = frozenset({"role", "mode", "kind", "url", "data", "signature", "redacted", "media_type"})
JSON_TEXT = frozenset({"arguments", "parameters"})


ESCAPED = rb"\\"
"""An escaped backslash: JSON text inside JSON, where an escape may hide a spelling."""

# What `\s` matches, as it stands in JSON text (RFC 8259 escapes, or UTF-8).
SPACE = (
    rb"(?:[ \t]|\\[nrtfb]|\\u00[0-9a-f]{2}|\xc2[\x85\xa0]|\xe1\x9a\x80"
    rb"|\xe2[\x80\x81][\x80-\xbf]|\xe3\x80\x80)"
)


@final
class Shield:
    """Made once a model, from the spellings that client text must not be able to make. `joints`:
    what its template writes around client text, see there."""

    def __init__(self, forbidden: Iterable[str], joints: Iterable[Joint] = ()) -> None:
        spellings = sorted({text for text in forbidden if text}, key=_longest)
        self.spellings = tuple(spellings)
        begins = sorted({text[:k] for text in spellings for k in range(1, len(text))}, key=len)
        begins.reverse()
        whole = "|".join(map(re.escape, spellings)) or r"(?!)"
        begin = "|".join(map(re.escape, begins)) or r"(?!)"
        heads, inner = _joined(spellings, joints)
        head = "|".join(map(re.escape, heads)) or r"(?!)"
        middle = "|".join(map(re.escape, inner)) or r"(?!)"
        self._pattern = re.compile(
            rf"(?:{whole})|(?:{begin})(?=\s*\Z)|\A(?:{head})|\A(?:{middle})(?=\Z)"
        )
        self.hidden = tuple(dict.fromkeys((*spellings, *begins, *heads, *inner)))
        """All that code points stand for, in their order."""
        self._points = {text: chr(0xF0000 + k) for k, text in enumerate(self.hidden)}
        self._quick = _quick_pattern(spellings, begins)
        self._quick_joint = _quick_joint(heads, inner) if heads else None
        self._firsts = tuple({text[0] for text in spellings})
        self._signs = (ESCAPED, *{msgspec.json.encode(text[0])[1:-1] for text in spellings})

    def is_usual(self, shields: Shields) -> bool:
        """Whether these code points mean what they mean in every other dialogue without private
        code points of its own, so that hidden texts can be compared."""
        return all(self._points.get(spelling) == point for point, spelling in shields.items())

    def spells(self, text: str) -> bool:
        """Whether a forbidden spelling, or the beginning of one at its end, is in `text`."""
        if not any(first in text for first in self._firsts):
            return False
        return self._pattern.search(text) is not None

    def is_needed(self, dialogue: Dialogue) -> bool:
        """Whether anything may need hiding: says so too often sometimes, too rarely never."""
        data = msgspec.json.encode(dialogue)
        if self._quick_joint is not None and self._quick_joint.search(data) is not None:
            return True
        # Why: most prose has none of the characters that a spelling begins with, and to look for
        # single ones costs a twentieth of the pattern.
        if not any(sign in data for sign in self._signs):
            return False
        return self._quick.search(data) is not None

    def hide(self, dialogue: Dialogue) -> tuple[Dialogue, Shields]:
        """The dialogue with its forbidden spellings hidden, and what each code point stands for."""
        if not self.is_needed(dialogue):
            return dialogue, {}
        return self._hide(dialogue)

    def _hide(self, dialogue: Dialogue) -> tuple[Dialogue, Shields]:
        used = set(PRIVATE.findall(json.dumps(msgspec.to_builtins(dialogue), ensure_ascii=False)))
        # Why not by order of appearance: the same text gets the same code points in every turn of
        # a conversation, as long as no client writes such code points itself.
        points = {} if used else self._points
        free = (chr(code) for code in range(0xF0000, 0x10FFFE) if chr(code) not in used)
        shields: dict[str, str] = {}

        def point(match: re.Match[str]) -> str:
            spelling = match.group()
            if spelling not in points:
                points[spelling] = _next(free)
            shields[points[spelling]] = spelling
            return points[spelling]

        hidden = map_strings(dialogue, lambda text: self._pattern.sub(point, text))
        return hidden, shields


def _next(free: Iterator[str]) -> str:
    for point in free:
        return point
    raise RequestError("the request holds every private code point of Unicode, which none needs")


def _joined(spellings: list[str], joints: Iterable[Joint]) -> tuple[list[str], list[str]]:
    """What a string must not begin with, and what it must not be, the longest first."""
    heads: set[str] = set()
    inner: set[str] = set()
    for before, after in joints:
        rests = {text[len(before) :] for text in spellings if text.startswith(before)} - {""}
        heads |= rests
        for rest in rests:
            ends = (at for at in range(1, len(rest)) if after.startswith(rest[at:]))
            inner |= {rest[:at] for at in ends}
    return sorted(heads, key=_longest), sorted(inner, key=_longest)


def _longest(text: str) -> tuple[int, str]:
    return -len(text), text


def _quick_joint(heads: list[str], inner: list[str]) -> re.Pattern[bytes]:
    """Finds them where strings begin in a dialogue's JSON."""
    begin = b"|".join(_quoted(text) for text in heads) or rb"(?!)"
    whole = b"|".join(_quoted(text) for text in inner) or rb"(?!)"
    return re.compile(b'"(?:(?:' + begin + b")|(?:" + whole + rb')\\*")')


def _quoted(text: str) -> bytes:
    return re.escape(msgspec.json.encode(text)[1:-1])


def _quick_pattern(spellings: list[str], begins: list[str]) -> re.Pattern[bytes]:
    """Finds, in a dialogue's JSON: a spelling, the beginning of one at a string's end, or an escape
    inside JSON text that may hide one."""
    whole = b"|".join(map(_quoted, spellings)) or rb"(?!)"
    begin = b"|".join(map(_quoted, begins)) or rb"(?!)"
    return re.compile(
        b"(?:" + whole + b")|(?:" + begin + b")" + SPACE + rb'*\\*"|\\\\u|\\\\/|\\\\\\"'
    )


def map_strings(value: T, change: Callable[[str], str]) -> T:
    """`value` with `change` applied to every client string in it, JSON text included: there to the
    strings inside, and the text is written anew only if one of them changed."""
    return cast(T, _map(value, change))


def _map(value: object, change: Callable[[str], str]) -> object:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, tuple | list):
        items = [_map(item, change) for item in value]
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value
        return type(value)(items)
    if isinstance(value, dict):
        return {_map(key, change): _map(item, change) for key, item in value.items()}
    if isinstance(value, Struct):
        return _map_struct(value, change)
    return value


def _map_struct(value: Struct, change: Callable[[str], str]) -> Struct:
    changed: dict[str, object] = {}
    for field in fields(value):
        if field.name in OPAQUE:
            continue
        old = getattr(value, field.name)
        if field.name in JSON_TEXT and isinstance(old, str):
            new: object = _map_json(old, change)
        else:
            new = _map(old, change)
        if new is not old and new != old:
            changed[field.name] = new
    return replace(value, **changed) if changed else value


def _map_json(text: str, change: Callable[[str], str]) -> str:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return change(text)
    mapped = _map(value, change)
    if mapped == value:
        return text
    # Why through UTF-16: an escaped lone surrogate would become a real one, which no text may hold.
    written = json.dumps(mapped, ensure_ascii=False)
    return written.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
