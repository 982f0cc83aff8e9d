"""Prompts and readings as openai-harmony 0.0.8 gives them. The files hold what it wrote of made-up
conversations and outputs; where the two differ on purpose, docs/dialects/harmony.md says so."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tokenwire.core.dialogue import (
    Dialogue,
    Reasoning,
    ReasoningSettings,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Turn,
)
from tokenwire.core.events import Started
from tokenwire.core.fold import Part, fold
from tokenwire.core.ports.dialect import ParserSetup
from tokenwire.core.prompt import Piece
from tokenwire.plugins.dialects.harmony.maker import HarmonyMaker
from tokenwire.plugins.dialects.harmony.markers import ALL
from tokenwire.plugins.dialects.harmony.template import HarmonyTemplate

HERE = Path(__file__).parent
PROMPTS = json.loads((HERE / "reference_prompts.json").read_text(encoding="utf-8"))
PARSES = json.loads((HERE / "reference_parses.json").read_text(encoding="utf-8"))
MARKER = re.compile("({})".format("|".join(map(re.escape, ALL))))
NOW = 1_700_000_000.0


def part_of(kind: str, *words: str):
    match kind:
        case "text":
            return Text(*words)
        case "reasoning":
            return Reasoning(*words)
        case "call":
            return ToolCall("c1", *words)
        case _:
            return ToolResult("c1", (Text(*words),))


@pytest.mark.parametrize("case", PROMPTS)
def test_a_prompt_is_the_same_to_the_letter(case) -> None:
    turns = tuple(
        Turn(role, tuple(part_of(*part) for part in parts)) for role, parts in case["turns"]
    )
    tools = tuple(
        ToolSpec(
            tool["name"], tool["description"], tool["parameters"] and json.dumps(tool["parameters"])
        )
        for tool in case["tools"]
    )
    dialogue = Dialogue(turns, tools, reasoning=ReasoningSettings(effort=case["effort"]))
    assert HarmonyTemplate().render(dialogue, NOW).text == case["text"]


def wanted(channel: str | None, recipient: str | None, content: str) -> Part:
    if recipient and recipient.startswith("functions."):
        return Part("tool_call", content, name=recipient.removeprefix("functions."))
    is_thought = channel == "analysis" or recipient is not None
    return Part("reasoning" if is_thought else "text", content)


@pytest.mark.parametrize("case", PARSES, ids=lambda case: case["text"][-40:])
def test_an_output_is_read_the_same(case) -> None:
    parser = HarmonyMaker().parser(ParserSetup())
    events = [Started(0)]
    for run in filter(None, MARKER.split(case["text"])):
        pieces = [Piece(run, special=True)] if run in ALL else map(Piece, run)
        events += [event for piece in pieces for event in parser.push(piece)]
    parts = fold([*events, *parser.flush()]).choices[0].parts
    right = [wanted(*message) for message in case["messages"] if message[2]]
    assert [(p.kind, p.name, p.text) for p in parts] == [(p.kind, p.name, p.text) for p in right]
