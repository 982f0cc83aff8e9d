"""Cuts a rendered prompt where the final assistant message ends, for the model to go on."""

from __future__ import annotations

from typing import Final

from tokenwire.core.errors import RequestError
from tokenwire.plugins.dialects.jinja.habits import Message

__all__ = ("cut", "mark")

TAG: Final = "CONTINUE\ufdd0HERE"


def mark(messages: list[Message]) -> tuple[str, str]:
    """Put a tag behind the last message's text, in place; gives the tag and the text before it."""
    last = messages[-1]
    content = last["content"]
    holder, key = last, "content"
    if isinstance(content, list):
        texts = [item for item in content if item["type"] == "text"]
        if texts:
            holder, key = texts[-1], "text"
    text = holder[key]
    if last["role"] != "assistant" or not isinstance(text, str) or not text:
        raise RequestError("only a final assistant message with text in it can be continued")
    tag = TAG
    while tag in text:
        tag += "\ufdd0"
    # Why the blank: a template that strips the message strips it too, and shows that it strips.
    holder[key] = f"{text}{tag} "
    return tag, text


def cut(rendered: str, tag: str, text: str) -> str:
    """`rendered` up to the tag. Raises RequestError where the template dropped the message."""
    at = rendered.rfind(tag)
    if at < 0 or text.strip() not in rendered:
        raise RequestError("the model's chat template cannot continue this final message")
    head = rendered[:at]
    return head if rendered.startswith(f"{tag} ", at) else head.rstrip()
