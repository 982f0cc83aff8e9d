"""An answer as it was played, and what it says; what of it must not depend on cutting and mode."""

from __future__ import annotations

from typing import Any

from jiter import from_json

from tests.cases.completions_message import read_completions
from tests.cases.message import Call, read_chat, read_messages
from tests.cases.responses_message import read_responses
from tokenwire.core.testing.client import Response

__all__ = ("CHAT", "COMPLETIONS", "MESSAGES", "RESPONSES", "Played", "compared")

CHAT, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/messages", "/v1/responses"
COMPLETIONS = "/v1/completions"
READERS = {
    CHAT: read_chat,
    MESSAGES: read_messages,
    RESPONSES: read_responses,
    COMPLETIONS: read_completions,
}


class Played:
    """A response, and what it says. Raises AssertionError where it breaks a rule of its wire."""

    def __init__(self, path: str, response: Response) -> None:
        self.path = path
        self.response = response
        self.has_texts = path != MESSAGES
        """Arguments are text, in either mode."""
        self.status = response.status
        self.choices = READERS[path](response)
        self.message = self.choices[0]


def compared(played: Played) -> list[Any]:
    """Of each choice, what must be the same in every cutting and mode."""
    return [
        (
            choice.content or None,
            choice.reasoning,
            [(call.name, _parsed(call, as_text=played.has_texts)) for call in choice.calls],
            choice.finish,
            choice.stop_sequence,
            None if choice.error is None else choice.error.get("type"),
            choice.prompt_tokens,
        )
        for choice in played.choices
    ]


def _parsed(call: Call, *, as_text: bool) -> object:
    """Messages has arguments parsed in its unary body, and of a cut call what is whole."""
    return call.arguments if as_text else from_json(call.arguments.encode(), partial_mode=True)
