"""How one family writes a call with bare values in tags, and where a value of it ends. As data.

A value may hold anything, its own closing tag too. That tag ends it only where what may follow a
value stands behind it: the next parameter, the call's end. So a file that holds `</parameter>` is
written whole. Where the closing tag is missing, the value ends at the call's end that what may
follow a call stands behind, or at a line that begins another parameter that the tool has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Final

from msgspec import Struct

__all__ = (
    "BLANK",
    "MAX_BETWEEN",
    "MAX_NAME",
    "NO",
    "PARTIAL",
    "TagSpelling",
    "bare_name_at",
    "begins",
    "name_at",
    "skip_blank",
    "value_end",
)

BLANK: Final = " \t\r\n"
MAX_NAME: Final = 256
"""Characters of a tool's or a parameter's name."""
MAX_BETWEEN: Final = 64
"""Characters of white space between a closing tag and what must follow it."""
NO, PARTIAL = -1, -2
"""In place of an index: it does not stand there; more text could make it stand there."""
BARE: Final = re.compile(r"[^\s<>{}\"'`]*")


class TagSpelling(Struct, frozen=True):
    """A call is `head` NAME `name_end`, then parameters, then `end`; a parameter is `param` KEY
    `key_end` VALUE `value_end`. White space may stand between tags."""

    param: str
    key_end: tuple[str, ...]
    """One tag, or two with white space between them."""
    value_end: str
    end: str
    head: str = ""
    """Between the call's marker and the name."""
    name_end: str = ""
    """"" for a name that ends where a tag or white space begins; it has no space in it then."""
    close: str = ""
    """Ends the call too, where `end` is missing."""
    after: tuple[str, ...] = ()
    """What may follow `end`: by these, an `end` inside a value with no closing tag is told."""
    trim: bool = False
    """Whether one newline at the beginning and one at the end of a value are markup."""
    cdata: tuple[str, str] = ("", "")
    """Around a value that would be taken for markup."""
    python: bool = False
    """Whether the template writes values as Python prints them."""


def skip_blank(text: str, at: int, most: int = MAX_BETWEEN) -> int:
    """Behind white space; NO where there is more of it than `most`."""
    start = at
    while at < len(text) and text[at] in BLANK:
        at += 1
        if at - start > most:
            return NO
    return at


def begins(text: str, at: int, markers: Collection[str], *, is_final: bool) -> int:
    """Behind the marker that stands at `at`; or NO, or PARTIAL. At the answer's end the beginning
    of a marker is PARTIAL too: it was cut off."""
    for marker in markers:
        if marker and text.startswith(marker, at):
            return at + len(marker)
    rest = text[at:]
    if not (rest or is_final) or any(rest and marker.startswith(rest) for marker in markers):
        return PARTIAL
    return NO


def name_at(text: str, at: int, ends: Sequence[str], *, is_final: bool) -> tuple[str, int]:
    """The name at `at`, and the index behind the tags `ends`; or NO or PARTIAL."""
    limit = at + MAX_NAME + len(ends[0])
    stop = text.find(ends[0], at, limit)
    name = text[at : stop if stop >= 0 else limit]
    if "\n" in name or (stop < 0 and len(text) >= limit) or (stop >= 0 and "<" in name):
        return "", NO
    if stop < 0:
        cut = name.find("<")
        if cut >= 0 and not ends[0].startswith(name[cut:]):
            return "", NO
        return "", PARTIAL
    if not name.strip():
        return "", NO
    at = stop + len(ends[0])
    for tag in ends[1:]:
        at = skip_blank(text, at)
        if at != NO:
            at = begins(text, at, (tag,), is_final=is_final)
        if at < 0:
            return "", at
    return name, at


def bare_name_at(text: str, at: int, follow: Sequence[str], *, is_final: bool) -> tuple[str, int]:
    """A name with no tag of its own, where one of `follow` stands behind it; the index at that."""
    start = skip_blank(text, at)
    if start == NO:
        return "", NO
    found = BARE.match(text, start)
    assert found is not None
    name, stop = found.group(), found.end()
    if len(name) > MAX_NAME or (not name and stop < len(text)):
        return "", NO
    behind = skip_blank(text, stop)
    if behind == NO:
        return "", NO
    if behind == len(text):
        return "", PARTIAL
    verdict = begins(text, behind, follow, is_final=is_final)
    return name, verdict if verdict < 0 else behind


def value_end(
    text: str,
    at: int,
    spelling: TagSpelling,
    *,
    closing: str,
    is_other: Callable[[str], bool] | None,
) -> int:
    """Behind the closing tag at `at`; `at` itself where the tag is missing and the value ends
    there; NO; PARTIAL. `closing`: the value's closing tag, which may be that of CDATA as well.
    `is_other`: whether a name is another parameter of the tool; None away from a line's start."""
    verdict = _closed(text, at, closing, spelling)
    if verdict != NO or closing != spelling.value_end:
        return verdict
    verdict = _with(text, at, spelling.end, spelling.after)
    if verdict != NO:
        return at if verdict >= 0 else verdict
    if is_other is None:
        return NO
    name, key = _param(text, at, spelling)
    return at if key >= 0 and is_other(name) else min(key, NO)


def _param(text: str, at: int, spelling: TagSpelling) -> tuple[str, int]:
    """The name of the parameter that is opened at `at`, and the index behind that; NO; PARTIAL."""
    key = begins(text, at, (spelling.param,), is_final=False)
    return ("", key) if key < 0 else name_at(text, key, spelling.key_end, is_final=False)


def _closed(text: str, at: int, closing: str, spelling: TagSpelling) -> int:
    """Behind `closing`, if a parameter or the call's end stands behind it; else NO or PARTIAL.

    Why a whole parameter: a value may hold its closing tag and `<parameter=` behind it."""
    verdict = _with(text, at, closing, tuple(filter(None, (spelling.end, spelling.close))))
    if verdict != NO or not text.startswith(closing, at):
        return verdict
    end = at + len(closing)
    behind = skip_blank(text, end)
    if behind == NO:
        return NO
    _, key = _param(text, behind, spelling)
    return end if key >= 0 else key


def _with(text: str, at: int, tag: str, follow: Sequence[str]) -> int:
    """Behind `tag`, if one of `follow` stands behind it and white space; else NO or PARTIAL."""
    if not text.startswith(tag, at):
        return PARTIAL if tag.startswith(text[at:]) else NO
    end = at + len(tag)
    behind = skip_blank(text, end)
    if behind == NO:
        return NO
    verdict = begins(text, behind, follow, is_final=False)
    return end if verdict >= 0 else verdict
