"""Parse: what shows each row of its table."""

from __future__ import annotations

from typing import Any

from tests.flow.fields.examples import Example, Examples

__all__ = ("EXAMPLES",)

CALL = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'
TOOL = {"type": "function", "function": {"name": "f"}}
CALLING: dict[str, Any] = {"text": CALL, "tools": [TOOL]}
TWICE: dict[str, Any] = {"text": CALL + "\n" + CALL, "tools": [TOOL]}
THOUGHT = {"text": "<think>\na\n</think>\n\nb"}

EXAMPLES = Examples(
    "/parse",
    {"model": "m", "text": "ab"},
    {
        "ids": Example({"ids": [65, 66, 67], "text": ...}),
        "text": Example({"text": "abc"}),
        "finish": Example({"finish": "length"}),
        "incremental": Example({"incremental": True}),
        "state": Example(
            {"state": "AAAA", "model": ...},
            elsewhere="tests/flow/test_tokens.py::test_an_answer_in_pieces_is_the_whole_one",
        ),
        "model": Example({"model": "gaps"}, beside=THOUGHT),
        "tools": Example({"tools": [TOOL]}, beside={"text": CALL}),
        "tool_choice": Example({"tool_choice": "none"}, beside=CALLING),
        "parallel_tool_calls": Example({"parallel_tool_calls": False}, beside=TWICE),
        "reasoning": Example({"reasoning": False}, beside=THOUGHT),
        "phase": Example({"phase": "reasoning"}, beside={"text": "a\n</think>\n\nb"}),
        "stop": Example({"stop": "b"}),
        "include_stop": Example({"include_stop": True}, beside={"stop": "b"}),
    },
)
