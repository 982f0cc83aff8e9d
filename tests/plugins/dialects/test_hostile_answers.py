"""Every installed parser over answers made to break it: markers cut, mixed and misplaced.

What is read must not depend on the cutting, nor on whether special tokens stand between, and a
saved state must go on the same.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import msgspec
import pytest

from tests.plugins.dialects.laws import TOOLS, parts_of
from tokenwire.core.errors import ConfigError
from tokenwire.core.host import Host, lone_services
from tokenwire.core.plugin_rows import plugin_rows
from tokenwire.core.ports.dialect import ParserMaker, ParserSetup, PartEvent
from tokenwire.core.prompt import Piece

BITS = (
    '{"', '"}', "\\", '"', "{", "}", "[", "]", "<", "</", "<|", "|>", "\n", "\n\n", " ", "  \n",
    "```", "```json\n", "null", "\\ud83d", "\x00", "é🌊", "'", '"""', "(", ")", ",", ":", "=", "1e",
    '{"name": "f"', '{"name": "f", "arguments": ', "call:", "to=", "f", "word", "a b", "\r\n",
)  # fmt: skip
SETUPS = (
    ParserSetup(tools=TOOLS),
    ParserSetup(tools=TOOLS, phase="reasoning"),
    ParserSetup(tools=TOOLS, parse_tools=False),
    ParserSetup(tools=TOOLS, reasoning=False),
)
ROUNDS = 15
STATE = 1024
FRAMED = ("harmony", "muse")
"""Parsers for which all that stands before a call's arguments is the header of a message."""


def makers() -> Iterator[tuple[str, ParserMaker]]:
    host, services = Host(), lone_services()
    for row in plugin_rows(host):
        if row.kind == "parser":
            try:
                yield row.name, host.parsers.build(row.name, {}, services, f"parser.{row.name}")
            except ConfigError:
                continue  # It reads what a checkpoint brings.


MAKERS = dict(makers())


@pytest.mark.parametrize("name", MAKERS)
def test_a_hostile_answer_reads_the_same_however_it_is_cut_and_moved(name: str) -> None:
    maker = MAKERS[name]
    marks = [*maker.markers, *maker.stop_strings]
    pattern = "|".join(map(re.escape, sorted(marks, key=len, reverse=True))) or "(?!)"
    chance = random.Random(name)
    for _ in range(ROUNDS):
        answer = "".join(hostile(maker, marks, chance))
        setup = chance.choice(SETUPS)
        whole = parts_of(read(maker, setup, [Piece(answer)]))
        letters = [Piece(letter) for letter in answer]
        assert parts_of(read(maker, setup, letters)) == whole, (setup, answer)
        assert parts_of(moved(maker, setup, letters)) == whole, (setup, answer)
        found = [part for part in re.split(f"({pattern})", answer) if part]
        coarse = [Piece(part, part in marks) for part in found]
        fine = [
            piece
            for part in coarse
            for piece in ([part] if part.special else map(Piece, part.text))
        ]
        special = parts_of(read(maker, setup, coarse))
        assert parts_of(read(maker, setup, fine)) == special, (setup, answer)
        assert parts_of(moved(maker, setup, fine)) == special, (setup, answer)


def hostile(maker: ParserMaker, marks: list[str], chance: random.Random) -> Iterator[str]:
    grammar = maker.call_grammar(TOOLS)
    calls = [] if grammar is None else [
        f'{grammar.begin}{call.begin}{{"text": "x"}}{call.end}{grammar.end}'
        for call in grammar.calls
    ]  # fmt: skip
    for _ in range(chance.randint(1, 8)):
        bit = chance.choice(chance.choice((BITS, marks or BITS, calls or BITS)))
        at = chance.randint(0, len(bit))
        yield chance.choice((bit, bit, bit[:at], bit[:at] + chance.choice(BITS) + bit[at:]))


def read(maker: ParserMaker, setup: ParserSetup, pieces: list[Piece]) -> list[PartEvent]:
    parser = maker.parser(setup)
    events: list[PartEvent] = []
    for piece in pieces:
        events += parser.push(piece)
    return [*events, *parser.flush()]


def moved(maker: ParserMaker, setup: ParserSetup, pieces: list[Piece]) -> list[PartEvent]:
    """In a fresh parser for every piece."""
    parser = maker.parser(setup)
    events: list[PartEvent] = []
    for piece in pieces:
        events += parser.push(piece)
        state = msgspec.msgpack.encode(parser.save())
        parser = maker.parser(setup)
        parser.restore(msgspec.msgpack.decode(state))
        assert msgspec.msgpack.encode(parser.save()) == state
    return [*events, *parser.flush()]


@pytest.mark.parametrize("name", MAKERS)
def test_a_call_that_was_cut_off_comes_out_as_text_or_as_that_call(name: str) -> None:
    maker = MAKERS[name]
    grammar = maker.call_grammar(TOOLS)
    if grammar is None or name in FRAMED:
        pytest.skip("no spelling of a call, or what is cut is a message's header")
    answer = f"{grammar.begin}{grammar.calls[0].begin}"
    for end in range(1, len(answer) + 1):
        parts = parts_of(read(maker, ParserSetup(tools=TOOLS), [Piece(answer[:end])]))
        assert parts, answer[:end]
        for part in parts:
            is_call = part.kind == "tool_call"
            assert not part.complete if is_call else part.text == answer[:end], parts


@pytest.mark.parametrize("letter", ["x", " ", "<", "{", '"', "\n"])
@pytest.mark.parametrize("name", MAKERS)
def test_what_is_held_of_a_call_without_a_name_is_short(name: str, letter: str) -> None:
    maker = MAKERS[name]
    grammar = maker.call_grammar(TOOLS)
    begins = list(maker.markers)
    if grammar is not None:
        begin = grammar.begin + grammar.calls[0].begin
        begins += [begin[:end] for end in range(0, len(begin), 5)]
    for begin in begins:
        parser = maker.parser(ParserSetup(tools=TOOLS))
        parser.push(Piece(begin))
        for _ in range(40):
            parser.push(Piece(letter * 50))
            assert len(msgspec.msgpack.encode(parser.save())) <= STATE, begin


def test_a_line_behind_a_stray_end_of_reasoning_is_kept() -> None:
    pieces = [Piece("a"), Piece("</think>", special=True), *map(Piece, "b\nc")]
    parts = parts_of(read(MAKERS["hermes"], ParserSetup(tools=TOOLS), pieces))
    assert [part.text for part in parts] == ["ab\nc"]


def test_a_header_is_known_while_its_end_comes() -> None:
    answer = "<|start|>assistant<|message|>hi<|eom|>"
    parts = parts_of(read(MAKERS["muse"], ParserSetup(tools=TOOLS), list(map(Piece, answer))))
    assert [part.text for part in parts] == ["hi"]


@pytest.mark.parametrize("name", ["hermes", "llama3_json", "mistral_json", "cohere"])
def test_an_announced_call_keeps_no_key_without_bound(name: str) -> None:
    maker = MAKERS[name]
    grammar = maker.call_grammar(TOOLS)
    assert grammar is not None
    begin = grammar.calls[0].begin
    if name == "cohere":
        begin += '0", "tool_name": "f", '
    answer = grammar.begin + begin[: begin.rindex(",") + 2] + '"' + "k" * 100_000
    parser = maker.parser(ParserSetup(tools=TOOLS))
    for at in range(0, len(answer), 1000):
        parser.push(Piece(answer[at : at + 1000]))
    assert len(msgspec.msgpack.encode(parser.save())) < 2048
