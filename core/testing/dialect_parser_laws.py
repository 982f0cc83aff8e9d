"""The laws of parsers, one function each. Knows no model family."""

from __future__ import annotations

import random
from typing import Final

import msgspec
from hypothesis import strategies as st

from tokenwire.core.errors import CodecStateError
from tokenwire.core.events import Order, PartDelta, PartStart, Started
from tokenwire.core.ports.dialect import ParserSetup, PartEvent
from tokenwire.core.prompt import Phase, Piece
from tokenwire.core.testing.dialect_probe import (
    SETUPS,
    TOOLS,
    DialectProbe,
    deltas,
    parts_of,
    turn_parts,
)

__all__ = ("PARSER_LAWS",)

PHASES: Final[dict[str, Phase]] = {
    "text": "content", "reasoning": "reasoning", "tool_call": "tool_call"
}  # fmt: skip
LONG: Final = 4000
"""Pieces of an answer that is long."""


def never_raises(probe: DialectProbe) -> None:
    """Whatever comes, and whatever of it is a special token, nothing is raised."""

    def check(case: tuple[ParserSetup, list[Piece]]) -> None:
        setup, pieces = case
        try:
            probe.parse(setup, pieces)
        except Exception as error:
            probe.broken(f"{pieces!r:.300} raised {type(error).__name__}: {error}")

    assert probe.maker is not None
    markers = ("", *probe.maker.markers, *probe.maker.stop_strings)
    pieces = [Piece(text, special) for text in markers for special in (False, True)]
    for setup in SETUPS:
        for first in pieces:
            for second in pieces:
                check((setup, [first, Piece("x"), second, Piece("{")]))
    some = st.lists(st.sampled_from(pieces) | st.builds(Piece, st.text(max_size=6), st.booleans()))
    probe.every(st.tuples(st.sampled_from(SETUPS), some), check)


def order(probe: DialectProbe) -> None:
    """The events come in the order of `events.ORDER`, every part is closed, of the right choice."""

    def check(case: tuple[ParserSetup, str]) -> None:
        setup, text = case
        events = probe.parse(setup, list(text))
        table = Order()
        try:
            for event in (Started(0), *events):
                table.step(event)
        except CodecStateError as error:
            probe.broken(f"{text!r:.200}: {error}")
        probe.equal(f"{text!r:.200}: the open part at the end", table.states, ["idle"])
        second = probe.parse(msgspec.structs.replace(setup, choice=1), [text])
        probe.equal("choices of choice 1", {event.choice for event in second} - {1}, set())

    probe.every(probe.outputs(), check)


def no_empty_deltas(probe: DialectProbe) -> None:
    """No delta is empty."""

    def check(case: tuple[ParserSetup, str]) -> None:
        setup, text = case
        for pieces in (list(text), [text], ["", text, ""]):
            empty = [event for event in deltas(probe.parse(setup, pieces)) if not event.text]
            probe.equal(f"{text!r:.200}: empty deltas", empty, [])

    probe.every(probe.outputs(), check)


def any_cutting(probe: DialectProbe) -> None:
    """However the text is cut into pieces, the parts are the same."""

    def check(case: tuple[ParserSetup, str]) -> None:
        setup, text = case
        whole = parts_of(probe.parse(setup, [text]))
        letters = parts_of(probe.parse(setup, list(text)))
        probe.equal(f"{text!r:.300} letter by letter", letters, whole)
        chance = random.Random(len(text))
        for _ in range(3):
            cuts = sorted(chance.choices(range(len(text) + 1), k=4))
            ends = (*cuts, len(text))
            pieces = [text[start:end] for start, end in zip((0, *cuts), ends, strict=True)]
            probe.equal(f"{pieces!r:.300}", parts_of(probe.parse(setup, pieces)), whole)

    probe.every(probe.outputs(), check)


def saved_at_any_piece(probe: DialectProbe) -> None:
    """Saved and restored between any two pieces, a parser goes on with the same events."""

    def check(case: tuple[ParserSetup, str]) -> None:
        setup, text = case
        pieces = [text[at : at + 3] for at in range(0, len(text), 3)]
        wanted = probe.parse(setup, pieces)
        parser = probe.parser(setup)
        events: list[PartEvent] = []
        for piece in pieces:
            events += parser.push(Piece(piece))
            fresh = probe.moved(parser, setup)
            probe.equal(f"{text!r:.200}: the phase after restoring", fresh.phase, parser.phase)
            parser = fresh
        probe.equal(f"{text!r:.200}", [*events, *parser.flush()], wanted)

    probe.every(probe.outputs(), check)


def small_state(probe: DialectProbe) -> None:
    """The state is small, and does not grow with the answer."""
    for setup in (ParserSetup(tools=TOOLS), ParserSetup(tools=TOOLS, phase="reasoning")):
        parser = probe.parser(setup)
        sizes = []
        for k in range(LONG):
            parser.push(Piece(" a\n"[k % 3] + f"word{k}"))
            sizes.append(len(msgspec.msgpack.encode(parser.save())))
        limit = probe.state_bytes
        probe.true(f"a state of {max(sizes)} bytes, {limit} are allowed", max(sizes) <= limit)
        probe.true(
            f"the state grew from {sizes[9]} to {sizes[-1]} bytes", sizes[-1] <= sizes[9] + 16
        )


def flushed_once(probe: DialectProbe) -> None:
    """A second flush gives nothing."""

    def check(case: tuple[ParserSetup, str]) -> None:
        setup, text = case
        parser = probe.parser(setup)
        parser.push(Piece(text))
        parser.flush()
        probe.equal(f"{text!r:.200}: the second flush", list(parser.flush()), [])

    probe.every(probe.outputs(), check)


def phase(probe: DialectProbe) -> None:
    """The phase says what plain text that comes now will be: it starts as the setup says, and a
    letter that goes straight out belongs to a part of that phase."""
    maker = probe.maker
    assert maker is not None
    if maker.reasoning_start:
        for tail in (maker.reasoning_start, f"{maker.reasoning_start}\n"):
            probe.equal(
                f"phase of a prompt that ends with {tail!r}", maker.phase(tail), "reasoning"
            )
        setup = ParserSetup(phase="reasoning")
        probe.equal("the first phase", probe.parser(setup).phase, "reasoning")
    probe.equal("phase of a prompt", maker.phase("hello"), "content")

    def check(case: tuple[ParserSetup, str]) -> None:
        setup, text = case
        parser = probe.parser(setup)
        kind = ""
        for letter in text:
            before = parser.phase
            for event in parser.push(Piece(letter)):
                if isinstance(event, PartStart):
                    kind = event.kind
                elif isinstance(event, PartDelta) and event.text == letter and letter.isalpha():
                    phases = (before, parser.phase)
                    probe.true(f"{text!r:.200}: a {kind} in {phases}", PHASES[kind] in phases)

    probe.every(probe.outputs(), check)


def bounded_holding(probe: DialectProbe) -> None:
    """Plain text goes out while it comes: what is held back has a bound."""
    for setup in (ParserSetup(tools=TOOLS), ParserSetup(tools=TOOLS, phase="reasoning")):
        for word in ("word ", "a < b\n", "x\n\n"):
            parser = probe.parser(setup)
            read = written = 0
            for _ in range(LONG // len(word)):
                read += len(word)
                written += sum(len(d.text) for d in deltas(list(parser.push(Piece(word)))))
                held = read - written
                limit = probe.held + (len(word) if written else 0)
                probe.true(f"{held} characters of {word!r} are held", held <= limit)


def where_text_ends(probe: DialectProbe) -> None:
    """A delta's `end` counts the raw characters up to its text's end, and never goes back."""

    def check(case: tuple[ParserSetup, str]) -> None:
        setup, text = case
        for pieces in (list(text), [text]):
            last, kind = 0, ""
            for event in probe.parse(setup, pieces):
                if isinstance(event, PartStart):
                    kind = event.kind
                if not isinstance(event, PartDelta):
                    continue
                if not last <= event.end <= len(text):
                    probe.broken(f"{text!r:.200}: end {event.end} after {last} of {len(text)}")
                if kind != "tool_call" and not text[: event.end].endswith(event.text):
                    probe.broken(f"{text!r:.200}: {event.text!r:.80} does not end at {event.end}")
                last = event.end

    probe.every(probe.outputs(), check)


def specials_unseen(probe: DialectProbe) -> None:
    """Special tokens that are no markers of the dialect's are never shown."""
    pieces = [Piece("one"), Piece("<|other|>", True), Piece(" two"), Piece("<|end|>", True)]
    parts = parts_of(probe.parse(ParserSetup(tools=TOOLS), pieces))
    probe.equal("text beside special tokens", [part.text for part in parts], ["one two"])


def nothing_repaired(probe: DialectProbe) -> None:
    """An answer that is cut off: a whole call is as it was written, a part of one is not complete,
    and its arguments are a beginning of what was written."""
    with_calls = [
        (text, wanted)
        for turn, text in probe.rendered()
        if (wanted := [part for part in turn_parts(turn) if part.kind == "tool_call"])
    ]
    if not with_calls:
        return probe.skip()
    for text, wanted in with_calls:
        for end in range(len(text)):
            parts = parts_of(probe.parse(ParserSetup(tools=TOOLS), [text[:end]]))
            calls = [part for part in parts if part.kind == "tool_call"]
            for call, whole in zip(calls, wanted, strict=False):
                cut = f"{text[:end]!r:.200}: arguments {call.text!r:.100}"
                probe.true(f"{cut} of {call.name!r}", call.name == whole.name)
                is_right = call.text == whole.text if call.complete else True
                probe.true(f"{cut} are called complete", is_right)
                probe.true(f"{cut} were not written", whole.text.startswith(call.text))


def text_when_told(probe: DialectProbe) -> None:
    """With parse_tools off there are no calls, and nothing of the text is lost."""
    setup = ParserSetup(tools=TOOLS, parse_tools=False, reasoning=False)
    rendered = tuple(probe.rendered())
    if not rendered:
        return probe.skip()
    for turn, text in rendered:
        parts = parts_of(probe.parse(setup, [text]))
        probe.equal(f"{text!r:.200}: calls", [p.name for p in parts if p.kind == "tool_call"], [])
        said = "".join(part.text for part in parts)
        for part in turn_parts(turn):
            if part.kind == "tool_call":
                probe.true(f"{part.text!r} is not in {said!r:.200}", part.text in said)


PARSER_LAWS = (
    never_raises,
    order,
    no_empty_deltas,
    any_cutting,
    saved_at_any_piece,
    small_state,
    flushed_once,
    phase,
    bounded_holding,
    where_text_ends,
    specials_unseen,
    nothing_repaired,
    text_when_told,
)
