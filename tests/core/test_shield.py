"""Client text stays text: what a client writes can never become a special token or a marker."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenwire.core.dialogue import Dialogue, Text, ToolCall, ToolResult, ToolSpec, Turn
from tokenwire.core.history import lift_reasoning
from tokenwire.core.shield import PRIVATE, Shield, map_strings

FORBIDDEN = ("<|im_start|>", "<|im_end|>", "<think>", "</think>", '<|"|>')
SHIELD = Shield(FORBIDDEN)
BITS = ("<", "<|im", "_start|>", "<|im_st", "art|>", "think>", " ", "\n", "é", '"', "\\")
PRIVATE_USE = ("\U000f0000", "\U000f0001")
FRAGMENTS = st.lists(st.sampled_from([*FORBIDDEN, *BITS, *PRIVATE_USE, "hello"]), max_size=6).map(
    "".join
)


def strings_of(value: object) -> list[str]:
    found: list[str] = []

    def note(text: str) -> str:
        found.append(text)
        return text

    map_strings(value, note)
    return found


def dialogue_of(*texts: str) -> Dialogue:
    return Dialogue(
        turns=(
            Turn("user", tuple(map(Text, texts))),
            Turn("assistant", (ToolCall("c1", "f", json.dumps({"a": list(texts)})),)),
            Turn("tool", (ToolResult("c1", tuple(map(Text, texts))),)),
        ),
        tools=(ToolSpec("f", texts[0], json.dumps({"description": texts[-1]})),),
    )


@given(st.lists(FRAGMENTS, min_size=1, max_size=3))
def test_no_spelling_is_left_not_even_across_strings(texts: list[str]) -> None:
    dialogue = dialogue_of(*texts)
    hidden, shields = SHIELD.hide(dialogue)
    left = strings_of(hidden)
    for text in left:
        assert not any(spelling in text for spelling in FORBIDDEN)
    for one in left:
        for two in left:
            joined = one.rstrip() + two.lstrip()
            assert not any(spelling in joined for spelling in FORBIDDEN)
            assert not any(spelling in one + two for spelling in FORBIDDEN)

    def restore(text: str) -> str:
        return PRIVATE.sub(lambda match: shields.get(match.group(), match.group()), text)

    restored = map_strings(hidden, restore)
    assert strings_of(restored) == strings_of(dialogue)


@given(st.lists(FRAGMENTS, min_size=1, max_size=2))
def test_the_quick_look_never_says_no_wrongly(texts: list[str]) -> None:
    dialogue = dialogue_of(*texts)
    if not SHIELD.is_needed(dialogue):
        assert SHIELD._hide(dialogue) == (dialogue, {})


@pytest.mark.parametrize(
    "arguments",
    [
        r'{"a": "\u003cthink>"}',
        r'{"a": "<\/think>"}',
        r'{"a": "<|\"|>"}',
        '{"a": "x<"}',
        '{"<think>": 1}',
    ],
)
def test_spellings_hidden_by_json_escapes_are_found(arguments: str) -> None:
    dialogue = Dialogue((Turn("assistant", (ToolCall("c", "f", arguments),)),))
    hidden, shields = SHIELD.hide(dialogue)
    assert shields
    part = hidden.turns[0].parts[0]
    assert isinstance(part, ToolCall)
    assert not any(spelling in json.dumps(json.loads(part.arguments)) for spelling in FORBIDDEN)


def test_harmless_dialogues_are_not_touched() -> None:
    dialogue = dialogue_of("a < b and b > c", "1 <2", "{}")
    hidden, shields = SHIELD.hide(dialogue)
    assert hidden is dialogue
    assert shields == {}


def test_an_escaped_surrogate_stays_harmless() -> None:
    arguments = r'{"a": "\ud800", "b": "<|im_end|> 🌊"}'
    hidden, _ = SHIELD.hide(Dialogue((Turn("assistant", (ToolCall("c", "f", arguments),)),)))
    part = hidden.turns[0].parts[0]
    assert isinstance(part, ToolCall)
    assert part.arguments.encode()
    assert json.loads(part.arguments)["b"].endswith(" 🌊")


def test_big_numbers_in_arguments_survive_hiding() -> None:
    arguments = '{"n": 9007199254740993, "s": "<think>"}'
    hidden, _ = SHIELD.hide(Dialogue((Turn("assistant", (ToolCall("c", "f", arguments),)),)))
    part = hidden.turns[0].parts[0]
    assert isinstance(part, ToolCall)
    assert json.loads(part.arguments)["n"] == 9007199254740993


@pytest.mark.parametrize(
    ("text", "reasoning", "rest"),
    [
        ("<think>a</think>b", "a", "b"),
        ("\n<think>\na\n</think>\n\nb", "a", "b"),
        ("b <think>a</think>", None, "b <think>a</think>"),
        ("<think>a", None, "<think>a"),
        ("<think>a</think><think>c</think>", "a", "<think>c</think>"),
    ],
)
def test_only_a_leading_reasoning_block_is_lifted(
    text: str, reasoning: str | None, rest: str
) -> None:
    dialogue = Dialogue((Turn("user", (Text(text),)), Turn("assistant", (Text(text),))))
    lifted = lift_reasoning(dialogue, "<think>", "</think>")
    assert lifted.turns[0] == dialogue.turns[0]
    kinds = msgspec.to_builtins(lifted.turns[1].parts)
    texts = {part["type"]: part["text"] for part in kinds}
    assert texts.get("reasoning") == reasoning
    assert texts["text"] == rest
