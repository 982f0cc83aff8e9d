"""Harmony outputs: right, garbled, cut off. Nothing is lost of them."""

from __future__ import annotations

import json

import pytest

from tests.plugins.dialects.reading import call, read, reasoning, text
from tests.shared_files import shared
from tokenwire.core.dialogue import ToolSpec
from tokenwire.core.events import PartDelta, PartStart
from tokenwire.core.ports.dialect import ParserSetup
from tokenwire.core.prompt import Piece
from tokenwire.plugins.dialects.harmony.maker import HarmonyMaker

MAKER = HarmonyMaker()
TOOLS = (ToolSpec("get_tide"), ToolSpec("open_ticket"))
FINAL, ANALYSIS = "<|channel|>final<|message|>", "<|channel|>analysis<|message|>"
NEXT = "<|end|><|start|>assistant"
FARO = call("get_tide", '{"port": "Faro"}')


def harmony(*pieces: str, **setup):
    return read(*pieces, maker=MAKER, tools=setup.pop("tools", TOOLS), **setup)


def test_the_reported_case_holds() -> None:
    lines = (shared("cases") / "codec_cases.jsonl").read_text(encoding="utf-8").splitlines()
    cases = [json.loads(line) for line in lines if '"format": "harmony"' in line]
    assert [case["id"] for case in cases] == ["TP-21"]
    (piece,) = cases[0]["model_output"]["pieces"]
    said = 'Write to=functions.get_tide {"port":"X"} to call it.'
    assert harmony(piece) == [text(said)]


@pytest.mark.parametrize(
    "header",
    [
        "<|channel|>commentary to=functions.get_tide <|constrain|>json",
        "<|channel|>commentary to=functions.get_tide<|constrain|>json",
        "<|channel|>commentary to=functions.get_tide json",
        "<|channel|>commentaryto=functions.get_tide",
        "<|channel|>analysis to=functions.get_tide",
        " to=functions.get_tide<|channel|>commentary <|constrain|>json",
        " to=functions.get_tide json",
        "assistant to=functions.get_tide<|channel|>commentary",
        "<|start|>assistant to=functions.get_tide<|channel|>commentary json",
        "<|channel|>commentary to=get_tide",
    ],
)
def test_the_recipient_may_stand_anywhere_in_the_header(header: str) -> None:
    assert harmony(f'{header}<|message|>{{"port": "Faro"}}<|call|>') == [FARO]


def test_messages_follow_each_other() -> None:
    made = '<|channel|>commentary to=functions.get_tide<|message|>{"port": "Faro"}'
    said = (ANALYSIS, "hm\n ok", NEXT, "<|channel|>commentary<|message|>I look. ", NEXT, made)
    want = [reasoning("hm\n ok"), text("I look. "), FARO]
    assert harmony(*said, "<|call|>") == want
    assert harmony(*said) == want
    assert harmony(*said, "<|call|><|start|>assistant", made, "<|call|>") == [*want, FARO]
    assert harmony(*said, "<|call|><|start|>assistant", FINAL, "Low.<|return|>") == [
        *want, text("Low.")
    ]  # fmt: skip


def test_a_marker_in_an_argument_string_is_data() -> None:
    body = '{"a": "<|call|> \\" <|end|>"}'
    said = f"<|channel|>commentary to=functions.get_tide<|message|>{body}<|call|>"
    assert harmony(said) == [call("get_tide", body)]


def test_once_markers_are_special_tokens_text_that_spells_one_is_text() -> None:
    special = ("<|channel|>", "<|message|>", "<|end|>")
    said = (special[0], "final", special[1], "The token <|end|> ends", " it.", special[2])
    assert harmony(*said, special=special) == [text("The token <|end|> ends it.")]


def test_a_special_token_ends_a_call_inside_a_string_and_the_answer_is_kept() -> None:
    special = ("<|channel|>", "<|message|>", "<|end|>", "<|start|>")
    said = (
        special[0], "commentary to=functions.get_tide", special[1], '{"port": "Fa', special[2],
        special[3], "assistant", special[0], "final", special[1], "Low.",
    )  # fmt: skip
    part = call("get_tide", '{"port": "Fa', complete=False)
    assert harmony(*said, special=special) == [part, text("Low.")]


@pytest.mark.parametrize(
    ("said", "want"),
    [
        ("Low tide at noon.", "Low tide at noon."),
        (" and so on", " and so on"),
        ("assistants help", "assistants help"),
        ("assistant", "assistant"),
        ("to be or not", "to be or not"),
        ("a <b> c <|d", "a <b> c <|d"),
        ("<|message|>Low.<|end|>\n", "Low."),
        ("<|channel|>final Low.<|return|>", "Low."),
        ("<|channel|>final", ""),
        ("<|channel|>comm", ""),
        ("<|channel|>answer<|message|>Low.", "Low."),
        ("<|channel|><|message|>Low.", "Low."),
        (f"{FINAL}Low.{NEXT}", "Low."),
        (f"{FINAL}Low.<|end|>More.", "Low.More."),
        ("<|channel|>final <|constrain|>json<|message|>{}<|return|>", "{}"),
        ("<|channel|>final" + " word" * 100, "word" + " word" * 99),
    ],
)
def test_a_missing_or_garbled_header_loses_no_text(said: str, want: str) -> None:
    parts = harmony(said)
    assert {part.kind for part in parts} <= {"text"}
    assert "".join(part.text for part in parts) == want


def test_what_is_said_to_tools_that_nobody_offered_is_reasoning() -> None:
    python = "<|channel|>analysis to=python code<|message|>print(1)<|call|>"
    search = '<|channel|>commentary to=browser.search<|message|>{"q": 1}<|call|>'
    assert harmony(python) == [reasoning("print(1)")]
    assert harmony(search) == [reasoning('{"q": 1}')]
    assert harmony(search, tools=(ToolSpec("browser.search"),)) == [
        call("browser.search", '{"q": 1}')
    ]


@pytest.mark.parametrize("body", ["", " ", "null"])
def test_no_arguments_are_an_empty_object(body: str) -> None:
    head = "<|channel|>commentary to=functions.get_tide<|message|>"
    assert harmony(f"{head}{body}<|call|>") == [call("get_tide", "{}")]


def test_a_call_that_is_cut_off_is_not_complete() -> None:
    head = "<|channel|>commentary to=functions.get_tide<|message|>"
    assert harmony(f'{head}{{"port": "Fa') == [call("get_tide", '{"port": "Fa', complete=False)]
    assert harmony(head) == [call("get_tide", "", complete=False)]
    assert harmony(" to=functions.get_ti") == []
    assert harmony(f'{head}{{"port": <|message|>"x"}}') == [
        call("get_tide", '{"port": ', complete=False), text('"x"}')
    ]  # fmt: skip


def test_text_behind_the_arguments_is_text() -> None:
    head = "<|channel|>commentary to=functions.get_tide<|message|>"
    assert harmony(f'{head}{{"port": "Faro"}} \n Done.') == [FARO, text("Done.")]


def test_with_tools_off_a_message_to_a_tool_is_text() -> None:
    said = '<|channel|>commentary to=functions.get_tide<|message|>{"port": "Faro"}'
    assert harmony(said, parse_tools=False) == [text('{"port": "Faro"}')]


def test_a_message_without_its_end_ends_where_the_next_begins() -> None:
    for between in ("<|start|>assistant", ""):
        assert harmony(ANALYSIS, "hm", between, FINAL, "Low.") == [reasoning("hm"), text("Low.")]


def test_where_a_prompt_ends() -> None:
    start = "<|start|>user<|message|>hi<|end|><|start|>assistant"
    assert MAKER.phase(start) == "content"
    assert MAKER.phase(f"{start}{ANALYSIS}so far") == "reasoning"
    assert MAKER.phase(f"{start}{FINAL}so far") == "content"
    assert MAKER.phase(f"{start}{ANALYSIS}x<|end|><|start|>assistant") == "content"
    assert harmony("more", NEXT, FINAL, "x", phase="reasoning") == [reasoning("more"), text("x")]


def test_text_goes_out_while_it_comes() -> None:
    parser = MAKER.parser(ParserSetup(tools=TOOLS))
    pieces = (ANALYSIS, "Let", " me", NEXT, " to=functions.get_tide<|message|>", '{"po', 'rt"')
    events = [list(parser.push(Piece(piece))) for piece in pieces]
    assert [len(found) for found in events] == [0, 2, 1, 1, 1, 1, 1]
    assert events[4][0] == PartStart(0, "tool_call", "get_tide")
    assert isinstance(events[5][0], PartDelta)
    assert events[5][0].text == '{"po'
