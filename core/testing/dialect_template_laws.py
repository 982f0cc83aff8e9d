"""The laws of templates, and of a template and a parser together. Knows no model family."""

from __future__ import annotations

from hypothesis import strategies as st

from tokenwire.core.dialogue import (
    Dialogue,
    Opaque,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Turn,
)
from tokenwire.core.errors import RequestError
from tokenwire.core.fold import Part
from tokenwire.core.ports.dialect import ParserSetup
from tokenwire.core.shield import PRIVATE, Shield
from tokenwire.core.testing.dialect_probe import (
    NOW,
    TOOLS,
    DialectProbe,
    asking,
    parts_of,
    turn_parts,
)

__all__ = ("PAIR_LAWS", "TEMPLATE_LAWS", "known_stops")


def pure(probe: DialectProbe) -> None:
    """The same dialogue and time give the same text; `now` is the only clock."""
    for dialogue in (asking(), asking(*probe.answers[:1])):
        first = probe.render(dialogue)
        probe.equal("the same dialogue, rendered again", probe.render(dialogue), first)


def refuses_in_words(probe: DialectProbe) -> None:
    """Nothing but RequestError comes out, with a message, whatever the dialogue."""
    texts = st.sampled_from(("", " ", "x", "\x00", "{{ x }}", "{% if %}", "é🌊", "<|x|>"))
    part = st.one_of(
        texts.map(Text),
        texts.map(Reasoning),
        texts.map(lambda text: ToolCall("c1", "look_up", text)),
        texts.map(lambda text: ToolResult("c1", (Text(text),))),
        st.just(Opaque("other", {})),
    )
    roles = st.sampled_from(("system", "developer", "user", "assistant", "tool"))
    turn = st.builds(Turn, roles, st.lists(part, max_size=2).map(tuple))
    dialogues = st.builds(
        Dialogue,
        st.lists(turn, max_size=4).map(tuple),
        st.sampled_from(((), TOOLS)),
        continue_final=st.booleans(),
    )

    def check(dialogue: Dialogue) -> None:
        try:
            probe.render(dialogue)
        except RequestError as error:
            probe.true("a RequestError without a message", bool(error.message))
        except Exception as error:
            probe.broken(f"{dialogue!r:.300} raised {type(error).__name__}: {error}")

    probe.every(dialogues, check)


def text_comes_out(probe: DialectProbe) -> None:
    """What a client asks stands in the prompt as it was written, in order."""

    def check(words: list[str]) -> None:
        turns = []
        for k, word in enumerate(words):
            turns.append(Turn("assistant" if k % 2 else "user", (Text(word),)))
        dialogue = Dialogue(turns=tuple(turns))
        text = probe.render(dialogue)
        at = 0
        for word in words:
            found = text.find(word, at)
            probe.true(f"{word!r} is not in {text[at:]!r:.300}", found >= 0)
            at = found + len(word)

    word = st.text(st.characters(categories=("L", "Nd", "So")), min_size=1, max_size=12)
    probe.every(st.lists(word.map(lambda w: f"«{w}»"), min_size=1, max_size=1), check)
    probe.every(st.lists(word.map(lambda w: f"«{w}»"), min_size=3, max_size=3), check)


def private_points_survive(probe: DialectProbe) -> None:
    """Private code points, come out as they went in, and none is made."""
    point = "\U000f0000"
    shown = probe.render(Dialogue(turns=(Turn("user", (Text(f"a{point}b"),)),)))
    probe.true("a private code point of a question is lost", f"a{point}b" in shown)
    probe.true("a private code point was made", not PRIVATE.search(shown.replace(point, "")))


def no_special_from_a_client(probe: DialectProbe) -> None:
    """No special token and no marker of the dialect's comes from what a client wrote."""
    tokenizer, maker = probe.tokenizer, probe.maker
    if tokenizer is None or probe.template is None:
        return probe.skip()
    added = {token.text: token.id for token in tokenizer.vocabulary.added}
    special = [token.text for token in tokenizer.vocabulary.added if token.special][:16]
    markers = [m for m in (maker.markers if maker else ()) if m in added]
    shield = Shield([*special, *markers])
    plain = _special_ids(probe, shield, "harmless")
    for spelling in (*special, *markers):
        got = _special_ids(probe, shield, f"x {spelling} y")
        probe.equal(f"special ids with {spelling!r} in a client's text", got, plain)


def _special_ids(probe: DialectProbe, shield: Shield, text: str) -> list[int]:
    assert probe.tokenizer is not None
    assert probe.template is not None
    said = Turn("assistant", (Text(text),))
    dialogue = Dialogue(turns=(Turn("user", (Text(text),)), said, Turn("user", (Text(text),))))
    hidden, shields = shield.hide(dialogue)
    prompt = probe.template.render(hidden, NOW).text
    known = {token.id for token in probe.tokenizer.vocabulary.added}
    return [id for id in probe.tokenizer.encode(prompt, shields) if id in known]


def known_stops(probe: DialectProbe) -> None:
    """Each stop string is one token of the tokenizer's."""
    if probe.tokenizer is None or probe.maker is None or not probe.maker.stop_strings:
        return probe.skip()
    added = {token.text for token in probe.tokenizer.vocabulary.added}
    for stop in probe.maker.stop_strings:
        probe.true(f"stop string {stop!r} is no token of the tokenizer's", stop in added)


def round_trip(probe: DialectProbe) -> None:
    """Rendering an answer and parsing its text gives the answer again."""
    for turn, text in probe.rendered():
        parts = parts_of(probe.parse(ParserSetup(tools=TOOLS), [text]))
        wanted = turn_parts(turn)
        probe.equal(f"{text!r:.300}", tuple(map(_plain, parts)), tuple(map(_plain, wanted)))


def _plain(part: Part) -> tuple[str, str, str, bool]:
    return part.kind, part.name, part.text, part.complete


TEMPLATE_LAWS = (
    pure,
    refuses_in_words,
    text_comes_out,
    private_points_survive,
    no_special_from_a_client,
)
PAIR_LAWS = (known_stops, round_trip)
