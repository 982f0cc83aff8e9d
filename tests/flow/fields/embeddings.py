"""Embeddings: what shows each row of its table."""

from __future__ import annotations

from tests.flow.fields.examples import Example, Examples

__all__ = ("EXAMPLES",)

EXAMPLES = Examples(
    "/v1/embeddings",
    {"model": "e", "input": "abc"},
    {
        "model": Example({"model": "e2"}, instead={"model": "e"}, model="e"),
        "input": Example({"input": ["abc", "d"]}, model="e"),
        "encoding_format": Example({"encoding_format": "base64"}, model="e"),
        "dimensions": Example({"dimensions": 3}, model="e"),
        "truncate_prompt_tokens": Example({"truncate_prompt_tokens": 2}, model="e"),
        "add_special_tokens": Example({"add_special_tokens": False}, model="e"),
        "priority": Example({"priority": 3}, model="e"),
        "user": Example({"user": "u"}, model="e"),
    },
)
