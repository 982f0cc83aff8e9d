"""The spellings of Muse's messages and calls, and the header of a message."""

from __future__ import annotations

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
WORDS: Final = (f"{START}assistant", START, "assistant", MESSAGE)
NO_HEADER: Final = "\n"
"""In place of a recipient: what stands there is no header."""


def recipient(text: str, at: int) -> tuple[str | None, int]:
    """Who the message at `at` is for ("" where it does not say), and where its text begins; None
    where more text is needed; NO_HEADER."""
    end = text.find(MESSAGE, at)
    head = text[at:] if end < 0 else text[at:end]
    if len(head) > 2 * MAX_NAME:
        return NO_HEADER, at
    if end >= 0:
        who = _addressed(head)
        return who, at if who == NO_HEADER else end + len(MESSAGE)
    words = head.split()
    is_header = all(word.startswith("to=") or word in WORDS for word in words[:-1])
    if is_header and (not words or _begins(words[-1])):
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


def _begins(word: str) -> bool:
    return word.startswith("to=") or any(known.startswith(word) for known in (*WORDS, "to="))
