"""Render: what shows each row of its table."""

from __future__ import annotations

from tests.flow.fields.examples import Example, Examples

__all__ = ("EXAMPLES",)

BODY = {"model": "m", "messages": [{"role": "user", "content": "ab"}]}
OTHER = {"model": "m", "messages": [{"role": "user", "content": "abc"}]}

EXAMPLES = Examples(
    "/render",
    {"protocol": "chat_completions", "body": {**BODY, "reasoning_effort": "none"}},
    {
        "protocol": Example({"protocol": "messages", "body": {**BODY, "max_tokens": 9}}),
        "body": Example({"body": OTHER}),
    },
)
