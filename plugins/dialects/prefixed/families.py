"""The families' names and what tells their chat templates. Cheap to import: listings need it."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

__all__ = ("FAMILIES", "Family")


class Family(Struct, frozen=True):
    """`known_by`: see Dialect.template_markers; () for families that must be configured."""

    name: str
    models: str
    reads: str
    known_by: tuple[str, ...] = ()
    template: str = "plain"


FAMILIES: Final = (
    Family(
        "apriel",
        "Apriel 1.5, 1.6",
        "[BEGIN FINAL RESPONSE], <tool_calls>[{}]</tool_calls>",
        ("<tool_calls>[", "[BEGIN FINAL RESPONSE]"),
    ),
    Family("firefunction", "Firefunction 2", "functools[{}]", ("functools[",)),
    Family(
        "gigachat",
        "GigaChat 3, 3.1",
        "function call<|role_sep|>{}, <|function_call|>{}",
        ("<|role_sep|>", "<|message_sep|>"),
    ),
    Family(
        "granite",
        "Granite 3.0 to 3.3",
        "think blocks, <|tool_call|>[{}]",
        ("<|tool_call|>", "<|start_of_role|>"),
    ),
    Family("granite_20b", "Granite 20B function calling", "<function_call> {}"),
    Family(
        "internlm",
        "InternLM 2.5, 3",
        "<|action_start|><|plugin|>{}<|action_end|>",
        ("<|action_start|>", "<|plugin|>"),
        "chatml",
    ),
    Family(
        "jamba",
        "Jamba, Hunyuan A13B",
        "think blocks, <tool_calls>[{}]</tool_calls>",
        ("<tool_calls>[",),
    ),
    Family(
        "longcat",
        "LongCat Flash",
        "<longcat_think>, <longcat_tool_call>{}",
        ("<longcat_tool_call>",),
    ),
    Family(
        "nemotron_nano_v2",
        "Nemotron Nano v2",
        "think blocks, <TOOLCALL>[{}]</TOOLCALL>",
        ("<TOOLCALL>", "<SPECIAL_11>"),
    ),
    Family(
        "phi4",
        "Phi-4-mini",
        "<|tool_call|>[{}]<|/tool_call|>, functools[{}]",
        ("<|tool|>", "<|/tool|>"),
    ),
    Family(
        "solar",
        "Solar Open",
        "<|think|> and <|tool_calls|> frames",
        ("<|tool_call:begin|>", "<|tool_call:args|>"),
    ),
)
