"""The spellings of Muse's messages and calls, and the header of a message."""

from __future__ import annotations

import re
from typing import Final

from tokenwire.plugins.dialects._shared.tag_spelling import MAX_NAME, TagSpelling
from tokenwire.plugins.dialects._shared.tags import Tags

__all__ = (
    "BODY",
    "CALLS",
    "CALLS_END",
    "FRAME",
    "INVOKE",
    "MESSAGE",
    "NO_HEADER",
    "SPELLING",
    "THOUGHT",
    "recipient",
)

START, MESSAGE = "<|start|>", "<|message|>"
EOM, EOT = "<|eom|>", "<|eot|>"
FRAME: Final = (START, MESSAGE, EOM, EOT)
CALLS, CALLS_END = "<atem:function_calls>", "</atem:function_calls>"
INVOKE: Final = '<atem:invoke name="'
SPELLING: Final = TagSpelling(
    head=INVOKE,
    name_end='">',
    param='<atem:parameter name="',
    key_end=('">',),
    value_end="</atem:parameter>",
    end="</atem:invoke>",
    close=CALLS_END,
    after=(CALLS_END, INVOKE),
)
THOUGHT: Final = Tags((START, EOM, EOT))
"""What is looked for in reasoning."""
BODY: Final = {
    False: THOUGHT,
    True: Tags((*THOUGHT.markers, CALLS, INVOKE)),
}
"""In text; by whether calls are read."""
BEGUN: Final = re.compile(
    "|".join(re.escape(MESSAGE[:n]) + r"\Z" for n in range(len(MESSAGE), 0, -1))
)
"""The beginning of MESSAGE, where a text ends with it."""
NO_HEADER: Final = "\n"
"""In place of a recipient: what stands there is no header."""


def recipient(text: str, at: int) -> tuple[str | None, int]:
    """Who the message at `at` is for ("" where it does not say), and where its text begins; None
    where more text is needed; NO_HEADER."""
    end = text.find(MESSAGE, at)
    head = text[at:] if end < 0 else text[at:end]
    begun = BEGUN.search(head) if end < 0 else None
    if len(head if begun is None else head[: begun.start()]) > 2 * MAX_NAME:
        return NO_HEADER, at
    if end >= 0:
        who = _addressed(head)
        return who, at if who == NO_HEADER else end + len(MESSAGE)
    if _may_address(head) or (begun and _addressed(head[: begun.start()]) != NO_HEADER):
        return None, at
    return NO_HEADER, at


def _addressed(head: str) -> str:
    """Whom a whole header names."""
    words = head.replace(START, "", 1).split() if head.lstrip().startswith(START) else head.split()
    if words[:1] == ["assistant"]:
        words = words[1:]
    if not words:
        return ""
    is_one = len(words) == 1 and words[0].startswith("to=")
    return words[0].removeprefix("to=") if is_one else NO_HEADER


def _may_address(head: str) -> bool:
    """Whether more words may make a header of it."""
    rest = head.lstrip()
    if START.startswith(rest):
        return True
    words = rest.removeprefix(START).split()
    if words[:1] == ["assistant"]:
        words = words[1:]
    if not words or words[0].startswith("to="):
        return len(words) < 2
    is_begun = words[0] in ("t", "to") or "assistant".startswith(words[0])
    return is_begun and len(words) == 1 and not head[-1].isspace()
