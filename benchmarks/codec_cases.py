"""What codec.py measures with: one long chat request, and answers of 2,000 tokens as text."""

from __future__ import annotations

import json
import re
from typing import Any, Final

__all__ = ("ANSWERS", "MODEL", "TOKENS", "chat_body", "compact", "messages_for_templates")

MODEL: Final = "DeepSeek-V4-Pro"
TOKENS: Final = 2000
ROUNDS: Final = 10
PROSE: Final = (
    "Rivers carry water from high ground to the sea, and on their way they shape the land. A slow"
    " river meanders; a fast one cuts. Where two of them meet, towns grow, and bridges are built. "
)
TOOL: Final[dict[str, Any]] = {
    "type": "function",
    "function": {
        "name": "look_up",
        "description": "Looks up what is known of a place.",
        "parameters": {
            "type": "object",
            "properties": {"place": {"type": "string"}, "count": {"type": "integer"}},
            "required": ["place"],
        },
    },
}


def chat_body() -> bytes:
    """A Chat Completions request of 42 messages and some 21 kB: a system message, ten rounds of
    question, call, result and answer, and a last question."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": PROSE * 6}]
    for number in range(ROUNDS):
        arguments = json.dumps({"place": f"river {number}", "count": number, "note": PROSE})
        function = {"name": "look_up", "arguments": arguments}
        call = {"id": f"call_{number}", "type": "function", "function": function}
        messages += [
            {"role": "user", "content": f"{number}. {PROSE * 2}"},
            {
                "role": "assistant",
                "content": None,
                "reasoning_content": PROSE * 2,
                "tool_calls": [call],
            },
            {"role": "tool", "tool_call_id": call["id"], "content": PROSE * 2},
            {"role": "assistant", "reasoning_content": PROSE, "content": PROSE},
        ]
    messages.append({"role": "user", "content": "And the last one?"})
    body = {"model": MODEL, "messages": messages, "tools": [TOOL], "stream": True}
    return json.dumps(body).encode()


def compact(body: bytes) -> bytes:
    """The same without white space, as JSON.stringify writes it, and OpenAI's own clients."""
    return json.dumps(json.loads(body), separators=(",", ":")).encode()


def messages_for_templates(body: bytes) -> list[dict[str, Any]]:
    """The same messages as Jinja templates take them: arguments as mappings."""
    messages: list[dict[str, Any]] = json.loads(body)["messages"]
    for message in messages:
        for call in message.get("tool_calls", ()):
            call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    return messages


def _words(count: int) -> list[str]:
    words = re.findall(r"\S+\s*", PROSE)
    return [words[k % len(words)] for k in range(count)]


def _call() -> list[str]:
    head = ("\n\n", "<", "｜DSML｜", "tool", "_calls", ">\n", "<", "｜DSML｜", "invoke", ' name="',
            "look_up", '">\n', "<", "｜DSML｜", "parameter", ' name="', "place", '" string="',
            "true", '">')  # fmt: skip
    tail = ("</", "｜DSML｜", "parameter", ">\n", "</", "｜DSML｜", "invoke", ">\n", "</",
            "｜DSML｜", "tool", "_calls", ">")  # fmt: skip
    return [*head, *_words(TOKENS - len(head) - len(tail)), *tail]


ANSWERS: Final = {
    "text": ["</think>", *_words(TOKENS - 1)],
    "thinking": _words(TOKENS),
    "tool call": ["</think>", *_call()[:-1]],
}
"""By kind: the pieces of an answer to a prompt that has opened a think block."""
