"""Broken dialects, each caught by the law that it breaks."""

from __future__ import annotations

from itertools import count
from types import ModuleType

import pytest
from msgspec.structs import replace

from tokenwire.core.byte_text import ByteText
from tokenwire.core.dialogue import Reasoning, Text, ToolCall, Turn
from tokenwire.core.events import PartDelta, PartEnd, PartStart
from tokenwire.core.factory import Factory, NoSettings
from tokenwire.core.hookspecs import impl
from tokenwire.core.host import Host
from tokenwire.core.ports.dialect import Dialect, Parser, ParserMaker, Template
from tokenwire.core.ports.tokenizer import NO_SHIELDS, Tokenizer
from tokenwire.core.prompt import Segment, Segments
from tokenwire.core.testing.dialect_kit import LAWS, conform, run_dialect_kit
from tokenwire.core.testing.dialect_probe import ANSWERS
from tokenwire.core.testing.laws import LawBroken
from tokenwire.plugins.dialects.hermes.maker import hermes_maker
from tokenwire.plugins.dialects.hermes.template import ChatmlTemplate

CALLS = (
    Turn("assistant", (ToolCall("c1", "look_up", '{"a": "b"}'),)),
    Turn("assistant", (Reasoning("why"), Text("so"), ToolCall("c1", "look_up", '{"a": [1]}'))),
)


class RightParser(Parser):
    """What the broken parsers are made of: the parser of `hermes`, seen from outside."""

    def __init__(self, setup) -> None:
        self.setup = setup
        self.inner = hermes_maker().parser(setup)

    @property
    def phase(self):
        return self.inner.phase

    def push(self, piece):
        return list(self.inner.push(piece))

    def flush(self):
        return list(self.inner.flush())

    def save(self):
        return self.inner.save()

    def restore(self, state):
        self.inner.restore(state)


class Maker(ParserMaker):
    reasoning_start, reasoning_end = "<think>", "</think>"
    markers = hermes_maker().markers
    stop_strings = ()

    def __init__(self, kind=RightParser) -> None:
        self.kind = kind

    def parser(self, setup):
        return self.kind(setup)


class Raises(RightParser):
    def push(self, piece):
        if piece.special and piece.text == "</tool_call>":
            raise KeyError(piece.text)
        return super().push(piece)


class LeavesPartsOpen(RightParser):
    def flush(self):
        return [event for event in super().flush() if not isinstance(event, PartEnd)]


class AlwaysChoiceZero(RightParser):
    def __init__(self, setup) -> None:
        super().__init__(replace(setup, choice=0))


class EmptyDeltas(RightParser):
    def push(self, piece):
        events = super().push(piece)
        starts = any(isinstance(event, PartStart) for event in events)
        return [*events, PartDelta(self.setup.choice, "", 0)] if starts else events


class TrimsEachPiece(RightParser):
    def push(self, piece):
        return super().push(replace(piece, text=piece.text.rstrip("\n")))


class ForgetsWhatIsHeld(RightParser):
    def save(self):
        return [*self.inner.save()[:2], "", *self.inner.save()[3:]]


class KeepsEverything(RightParser):
    def __init__(self, setup) -> None:
        super().__init__(setup)
        self.said = ""

    def push(self, piece):
        self.said += piece.text
        return super().push(piece)

    def save(self):
        return [self.inner.save(), self.said]

    def restore(self, state):
        self.inner.restore(state[0])
        self.said = state[1]


class FlushesTwice(RightParser):
    def flush(self):
        events = super().flush()
        return events or [PartStart(self.setup.choice, "text"), PartEnd(self.setup.choice)]


class SaysContent(RightParser):
    @property
    def phase(self):
        return "content"


class WaitsForTheEnd(RightParser):
    def __init__(self, setup) -> None:
        super().__init__(setup)
        self.kept = []

    def push(self, piece):
        self.kept += super().push(piece)
        return []

    def flush(self):
        events, self.kept = self.kept, []
        return [*events, *super().flush()]


class CountsNothing(RightParser):
    def push(self, piece):
        events = super().push(piece)
        return [replace(e, end=0) if isinstance(e, PartDelta) else e for e in events]


class ShowsSpecials(RightParser):
    def push(self, piece):
        return super().push(replace(piece, special=False))


class RepairsCalls(RightParser):
    def __init__(self, setup) -> None:
        super().__init__(setup)
        self.arguments = ""

    def push(self, piece):
        events = super().push(piece)
        self.arguments = "".join(e.text for e in events if isinstance(e, PartDelta)) or "{"
        return events

    def flush(self):
        return [
            fixed
            for event in super().flush()
            for fixed in (
                (PartDelta(0, "}", self.inner.save()[4]), replace(event, complete=True))
                if isinstance(event, PartEnd) and not event.complete
                else (event,)
            )
        ]


class ParsesAnyway(RightParser):
    def __init__(self, setup) -> None:
        super().__init__(replace(setup, parse_tools=True))


class UnknownStops(Maker):
    stop_strings = ("<|no such token|>",)


class RightTemplate(Template):
    def __init__(self) -> None:
        self.inner = ChatmlTemplate()

    def render(self, dialogue, now):
        return self.inner.render(dialogue, now)


class Changing(RightTemplate):
    """Changes the text of its render."""

    def change(self, text):
        raise NotImplementedError

    def render(self, dialogue, now):
        return Segments((Segment(self.change(super().render(dialogue, now).text), "unknown"),))


class CountsItsRenders(Changing):
    def __init__(self) -> None:
        super().__init__()
        self.renders = count()

    def change(self, text):
        return f"{next(self.renders)}{text}"


class FailsInItsOwnWords(RightTemplate):
    def render(self, dialogue, now):
        return super().render(dialogue, dialogue.turns[0] and now)


class LosesText(RightTemplate):
    def render(self, dialogue, now):
        return super().render(replace(dialogue, turns=dialogue.turns[-1:]), now)


class Escapes(Changing):
    def change(self, text):
        return text.encode("ascii", "backslashreplace").decode()


class ShowsTheHidden(Changing):
    def change(self, text):
        return text.replace("\U000f0000", "<eos>")


class WritesOtherTags(Changing):
    def change(self, text):
        return text.replace("<tool_call>\n{", "<toolcall>\n{")


class Bytes(Tokenizer):
    def __init__(self) -> None:
        self.text = ByteText()
        self.vocabulary = self.text.vocabulary()

    def encode(self, text, shields=NO_SHIELDS):
        return self.text.encode(text, shields)

    def token_bytes(self, id):
        return self.text.token_bytes(id)


PARSERS = {
    Raises: "never_raises",
    LeavesPartsOpen: "order",
    AlwaysChoiceZero: "order",
    EmptyDeltas: "no_empty_deltas",
    TrimsEachPiece: "any_cutting",
    ForgetsWhatIsHeld: "saved_at_any_piece",
    KeepsEverything: "small_state",
    FlushesTwice: "flushed_once",
    SaysContent: "phase",
    WaitsForTheEnd: "bounded_holding",
    CountsNothing: "where_text_ends",
    ShowsSpecials: "specials_unseen",
    RepairsCalls: "nothing_repaired",
    ParsesAnyway: "text_when_told",
}
TEMPLATES = {
    CountsItsRenders: "pure",
    FailsInItsOwnWords: "refuses_in_words",
    LosesText: "text_comes_out",
    Escapes: "private_points_survive",
    ShowsTheHidden: "no_special_from_a_client",
    WritesOtherTags: "round_trip",
}


def run(template, maker, laws=LAWS) -> None:
    answers = (*ANSWERS, *CALLS)
    run_dialect_kit(template, maker, answers=answers, tokenizer=Bytes(), laws=laws)


def test_what_the_mutants_are_made_of_conforms() -> None:
    run(RightTemplate(), Maker())


@pytest.mark.parametrize(("kind", "law"), PARSERS.items(), ids=str)
def test_a_broken_parser_is_caught(kind, law) -> None:
    with pytest.raises(LawBroken) as caught:
        run(RightTemplate(), Maker(kind), [law])
    assert (caught.value.port, caught.value.law) == ("dialect", law)


@pytest.mark.parametrize(("kind", "law"), TEMPLATES.items(), ids=str)
def test_a_broken_template_is_caught(kind, law) -> None:
    with pytest.raises(LawBroken) as caught:
        run(kind(), Maker(), [law])
    assert (caught.value.port, caught.value.law) == ("dialect", law)


def test_an_unknown_stop_string_is_caught() -> None:
    with pytest.raises(LawBroken) as caught:
        run(RightTemplate(), UnknownStops(), ["known_stops"])
    assert caught.value.law == "known_stops"


def test_every_law_has_a_mutant() -> None:
    assert set(LAWS) == {*PARSERS.values(), *TEMPLATES.values(), "known_stops"}


def test_a_template_alone_and_a_parser_alone_conform() -> None:
    run(RightTemplate(), None)
    run(None, Maker())


def test_only_laws_that_were_checked_are_said_to_hold() -> None:
    held = run_dialect_kit(RightTemplate(), Maker(), examples=3)
    assert set(LAWS) - set(held) == {
        "known_stops",
        "no_special_from_a_client",
        "nothing_repaired",
    }


@pytest.mark.parametrize("kind", [RepairsCalls, ParsesAnyway])
def test_conform_tries_calls_with_a_dialect_that_reads_them(kind) -> None:
    plugin = ModuleType("mutant")
    plugin.register_templates = impl(lambda: [factory("t", RightTemplate)])
    plugin.register_parsers = impl(lambda: [factory("p", lambda: Maker(kind))])
    plugin.register_dialects = impl(lambda: [factory("d", lambda: Dialect("d", "t", "p"))])
    with pytest.raises(LawBroken) as caught:
        conform(Host({"mutant": plugin}, entry_points=False), "d")
    assert caught.value.law == PARSERS[kind]


def factory(name, make):
    return Factory(name, NoSettings, lambda settings, services: make())
