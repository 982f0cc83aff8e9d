"""Detokenize: what shows each row of its table."""

from __future__ import annotations

from tests.flow.fields.examples import Example, Examples

__all__ = ("EXAMPLES",)

EXAMPLES = Examples(
    "/detokenize",
    {"model": "m", "tokens": [65]},
    {
        "model": Example(
            {"model": "gaps", "tokens": [260]}, instead={"model": "begins", "tokens": [65]}
        ),
        "tokens": Example({"tokens": [66, 257]}),
    },
)
