"""The fixed text of DeepSeek V4 and V4.1 prompts: what the models were trained to be told. As data.

It is the models' format, so it must be equal to the letter to what their makers' renderer writes;
the tests compare it with that renderer.
"""

from __future__ import annotations

from typing import Final

from tokenwire.plugins.dialects.deepseek.spelling import THINK, THINK_END, Dsml

__all__ = (
    "AFTER_TOOLS",
    "JSON_ONLY",
    "MORE_TOOLS",
    "SCHEMA",
    "V4_EFFORTS",
    "effort_score",
    "tools_header",
)

AFTER_TOOLS: Final = (
    "\nYou MUST strictly follow the above defined tool name and parameter schemas to invoke tool"
    " calls.\n"
)
MORE_TOOLS: Final = "\n\n### Updated Tool Schemas\n\n"
JSON_ONLY: Final = (
    "You are a helpful assistant designed to output JSON.\n## Response Format:\n\n"
    "Reply with JSON object ONLY."
)
SCHEMA: Final = (
    "## Response Format:\n\nYou MUST strictly adhere to the following schema to reply:\n"
)
V4_EFFORTS: Final = {
    "low": "",
    "high": (
        "Reasoning Effort: Absolute maximum with no shortcuts permitted.\n"
        "You MUST be very thorough in your thinking and comprehensively decompose the problem to"
        " resolve the root cause, rigorously stress-testing your logic against all potential paths,"
        " edge cases, and adversarial scenarios.\n"
        "Explicitly write out your entire deliberation process, documenting every intermediate"
        " step, considered alternative, and rejected hypothesis to ensure absolutely no assumption"
        " is left unchecked.\n\n"
    ),
    "max": (
        "Reasoning Effort: Beyond maximum — exhaustive, relentless, and uncompromising.\n"
        "You MUST reason with the utmost depth and rigor, leaving absolutely nothing to chance:"
        " exhaustively decompose the problem into its most fundamental components, trace every"
        " causal chain to its root, and resolve the underlying cause rather than any surface"
        " symptom.\n"
        "Do not stop reasoning until you have independently verified the solution from multiple"
        " angles and are certain that no assumption remains unchecked and no error remains"
        " undiscovered.\n\n"
    ),
}
V41_SCORES: Final = {"low": 50, "high": 75, "max": 100}


def effort_score(effort: str) -> str:
    """How V4.1 is told to think `low`, `high` or `max`."""
    return (
        f"Reasoning Effort: {V41_SCORES[effort]}"
        " (range 1-100, the higher the value, the more thorough the reasoning)\n\n"
    )


def tools_header(dsml: Dsml) -> str:
    """What stands before the tools' schemas."""

    def example(name: str, *inner: str) -> str:
        return "\n".join((f'{dsml.open("invoke")} name="{name}">', *inner, dsml.close("invoke")))

    parameter = (
        f'{dsml.open("parameter")} name="$PARAMETER_NAME" string="true|false">$PARAMETER_VALUE'
        + dsml.close("parameter")
    )
    section = f"{dsml.open(dsml.section)}>"
    return (
        "## Tools\n\nYou have access to a set of tools to help answer the user's question."
        f' You can invoke tools by writing a "{section}" block like the following:\n\n'
        f"{section}\n{example('$TOOL_NAME', parameter, '...')}\n{example('$TOOL_NAME2', '...')}\n"
        f"{dsml.close(dsml.section)}\n\n"
        'String parameters should be specified as is and set `string="true"`. For all other types'
        " (numbers, booleans, arrays, objects), pass the value in JSON format and set"
        ' `string="false"`.\n\n'
        f"If thinking_mode is enabled (triggered by {THINK}), you MUST output your complete"
        f" reasoning inside {THINK}...{THINK_END} BEFORE any tool calls or final response.\n\n"
        f"Otherwise, output directly after {THINK_END} with tool calls or final response.\n\n"
        "### Available Tool Schemas\n\n"
    )
