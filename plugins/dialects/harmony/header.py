"""What a message's header says: its channel and its recipient; and what is no header. Stateless.

A header is `role`, `to=RECIPIENT`, `<|channel|>NAME`, `<|constrain|>TYPE`, in any order and with or
without any of them; the recipient stands before or behind the channel.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

__all__ = ("MAX_HEADER", "channel_of", "is_cut_call", "may_lead", "recipient_of", "strays")

MAX_HEADER: Final = 300
"""Characters that are held for a header."""
ASSISTANT: Final = "assistant"
CHANNELS: Final = ("analysis", "commentary", "final")
CHANNEL_NAME: Final = re.compile(r"<\|channel\|>\s*(analysis|commentary|final)")
RECIPIENT: Final = re.compile(r"to=([^\s<]+)")
RECIPIENT_LEAD: Final = re.compile(r"to=[^\s<]*\s*[a-z]*\s*")
"""A recipient at the head of an answer, and the type of its content."""
KNOWN: Final = re.compile(
    r"<\|channel\|>\s*(?:analysis|commentary|final)?|<\|constrain\|>\s*\w*|to=[^\s<]+"
    r"|\A\s*(?:assistant|user|system|developer|tool)\b"
)
WORDS: Final = (ASSISTANT, *CHANNELS, "to=")
TYPES: Final = ("json", "code")


def channel_of(header: str) -> str:
    """The last one named; "" for none that is known."""
    found: list[str] = CHANNEL_NAME.findall(header)
    return found[-1] if found else ""


def recipient_of(header: str) -> str:
    found: list[str] = RECIPIENT.findall(header)
    return found[-1] if found else ""


def may_lead(text: str) -> bool:
    """Whether text without markers may begin a header whose `<|start|>` is missing or stands in the
    prompt."""
    if len(text) > MAX_HEADER:
        return False
    rest = text.lstrip()
    if ASSISTANT.startswith(rest):
        return True
    rest = rest.removeprefix(ASSISTANT).lstrip()
    return "to=".startswith(rest) or RECIPIENT_LEAD.fullmatch(rest) is not None


def is_cut_call(lead: str) -> bool:
    """Whether a lead says that a call was to follow."""
    return lead.lstrip().removeprefix(ASSISTANT).lstrip().startswith("to=functions.")


def strays(header: str, *, is_last: bool = False) -> Iterator[tuple[str, int]]:
    """Text in a header that has no `<|message|>` which says nothing of the message, with the index
    behind it. `is_last`: the answer ends here, so that the last word may be cut."""
    at = 0
    for known in KNOWN.finditer(header):
        yield from _stray(header, at, known.start())
        at = known.end()
    word = header[at:].strip()
    if not (is_last and any(name.startswith(word) for name in WORDS)):
        yield from _stray(header, at, len(header))


def _stray(header: str, start: int, end: int) -> Iterator[tuple[str, int]]:
    text = header[start:end].lstrip()
    if text and text.rstrip() not in TYPES:
        yield text, end
