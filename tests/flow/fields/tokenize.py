"""Tokenize: what shows each row of its table."""

from __future__ import annotations

from tests.flow.fields.examples import Example, Examples

__all__ = ("EXAMPLES",)

HI = [{"role": "user", "content": "ab"}]
CHAT = {"protocol": "chat_completions", "body": {"model": "m", "messages": HI}}

EXAMPLES = Examples(
    "/tokenize",
    {"model": "m", "prompt": "ab"},
    {
        "model": Example({"model": "begins"}),
        "prompt": Example({"prompt": "abc"}),
        "messages": Example({"messages": HI, "prompt": ...}),
        "request": Example({"request": CHAT, "prompt": ..., "model": ...}),
        "add_special_tokens": Example({"add_special_tokens": False}, model="begins"),
        "parse_special": Example({"parse_special": True}, beside={"prompt": "a<eos>"}),
        "return_token_strs": Example({"return_token_strs": True}),
    },
)
