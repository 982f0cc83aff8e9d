"""The laws that every family keeps, checked with its published templates and made-up turns.

To use it, in tests/plugins/dialects/FAMILY/test_laws.py:

    from tests.plugins.dialects import laws

    COVERED = [
        laws.Covered("Qwen-Qwen3-0.6B"),
        laws.Covered("Qwen-Qwen2.5-7B-Instruct", thinks=False),
    ]

    @pytest.mark.parametrize("covered", COVERED, ids=laws.name_of)
    @pytest.mark.parametrize("law", laws.LAWS, ids=laws.name_of)
    def test_the_laws_hold(law, covered) -> None:
        law(family_maker(), covered)

What a template does to a turn that no parser can undo is declared in `Covered`, and nothing else is
forgiven. `turns=` is a strategy of turns of your own, for shapes that cannot say all that JSON can;
`exact=False` compares arguments by value, for formats with values converted by the tools' schema.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from tests.examples import share
from tests.plugins.dialects.reading import template_source
from tokenwire.core.dialogue import Dialogue, Reasoning, Text, ToolCall, ToolResult, ToolSpec, Turn
from tokenwire.core.errors import RequestError
from tokenwire.core.events import Order, PartDelta, Started
from tokenwire.core.fold import Part, fold
from tokenwire.core.ports.dialect import ParserMaker, ParserSetup, PartEvent, Template
from tokenwire.core.prompt import Piece
from tokenwire.core.rendering import Renderer
from tokenwire.plugins.dialects.jinja.settings import Settings
from tokenwire.plugins.dialects.jinja.template import JinjaTemplate
from tokenwire.plugins.tokenizers.bytes.tokenizer import BytesTokenizer

__all__ = ("LAWS", "TOOLS", "Covered", "Law", "answer", "name_of", "strings", "turn_of", "turns")

SCHEMA = json.dumps({
    "type": "object",
    "properties": {
        "text": {"type": "string", "description": "any"},
        "count": {"type": "integer"},
        "share": {"type": "number"},
        "flag": {"type": "boolean"},
        "list": {"type": "array", "items": {"type": "integer"}},
        "map": {"type": "object", "properties": {"name": {"type": "string"}}},
        "any": {"description": "of no type"},
    },
})  # fmt: skip
TOOLS = (ToolSpec("f", "Does it.", SCHEMA), ToolSpec("get_tide", "Other.", SCHEMA))
ASKED = "Please do zqq."
QUESTION = Turn("user", (Text(ASKED),))
SIGN = "zqXsignXqz"
"""A text that no template has."""
TOKENS = {"bos_token": "<bos-token>", "eos_token": "<eos-token>", "pad_token": "<pad-token>"}
STATE = 1024
NOW = 1_700_000_000.0


class Covered(Struct, frozen=True):
    """A published template, and what it does to answers."""

    template: str
    thinks: bool = True
    """Whether it shows reasoning."""
    speaks: bool = True
    """Whether it shows text beside calls."""
    calls: int = 6
    """How many calls it can show in one turn."""
    trims: str | None = "\n"
    """What it or the parser takes off the ends of text; None: all white space."""
    thought_trims: str | None = "\n"
    """The same, of reasoning."""
    exact: bool = True
    """Whether arguments are JSON and come back to the byte; else by value."""
    rewrites: bool = False
    """Whether the template writes JSON arguments anew (escapes), so that law 1 is by value."""
    is_flat: bool = True
    """Whether the state stays small while a long argument string comes."""
    head: str = ""
    """What the answer stands behind, where the prompt of an answer is no beginning of the prompt
    that has it as history."""
    end: str = ""
    """What stands behind an answer with calls, where it is not what stands behind text."""
    tokens: Mapping[str, str] | None = None
    """Its special tokens, where a template compares them."""
    args: Mapping[str, object] = {}
    """Template arguments ({"enable_thinking": True})."""
    turns: st.SearchStrategy[Turn] | None = None
    """Instead of `turns(maker, covered)`."""
    tools: tuple[ToolSpec, ...] = TOOLS


Law = Callable[[ParserMaker, Covered], None]


def name_of(value: object) -> str:
    """For pytest's ids, the same in every process."""
    if isinstance(value, Covered):
        return value.template
    return str(getattr(value, "__name__", type(value).__name__))


def strings(markers: tuple[str, ...]) -> st.SearchStrategy[str]:
    """Of any letters, with what is hard for parsers, and `markers`."""
    letters = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=8)
    bits = ("\n", "\n\n", '"', "\\", "{", "}", "[", "]", "<", "</", " ", "é🌊", "'", *markers)
    return st.lists(st.sampled_from(bits) | letters, max_size=4).map("".join)


def turns(maker: ParserMaker, covered: Covered) -> st.SearchStrategy[Turn]:
    """What the template can show: reasoning, then text, then calls with any JSON object."""
    inside = strings((*maker.markers, *maker.stop_strings))
    outside = strings(()).filter(lambda text: not any(m in text for m in maker.markers))
    scalars = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | inside
    values = st.recursive(
        scalars | st.floats(allow_nan=False, allow_infinity=False),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(inside, inner, max_size=3),
        max_leaves=6,
    )
    call = st.builds(
        lambda tool, given: ToolCall("call00001", tool, json.dumps(given, ensure_ascii=False)),
        st.sampled_from([tool.name for tool in covered.tools]),
        st.just({}) | st.dictionaries(inside, values, max_size=3),
    )
    said = outside.map(lambda text: text.strip(covered.trims)).filter(lambda text: text.strip())
    thought = outside.map(lambda text: text.strip(covered.thought_trims)).filter(str.strip)

    called = st.lists(call, max_size=covered.calls)
    return st.builds(partial(turn_of, covered), st.none() | thought, st.none() | said, called)


def turn_of(
    covered: Covered, reasoning: str | None, text: str | None, calls: list[ToolCall]
) -> Turn:
    """Of what of these the template can show; some text, where that is nothing."""
    if calls and not covered.speaks:
        text = None
    parts = [
        *([Reasoning(reasoning)] if reasoning and covered.thinks else []),
        *([Text(text or "ok")] if text or not calls else []),
        *calls,
    ]
    return Turn("assistant", tuple(parts))


def template_of(covered: Covered) -> Template:
    return _template(covered.template, tuple((covered.tokens or TOKENS).items()))


@cache
def _template(name: str, tokens: tuple[tuple[str, str], ...]) -> Template:
    return JinjaTemplate(template_source(name), Settings(), dict(tokens))


def answer(own: Template, maker: ParserMaker, covered: Covered, turn: Turn) -> tuple[str, str]:
    """(what stands before the answer, the answer), from the turn rendered as history."""

    def render(*turns: Turn) -> str:
        tools = covered.tools if covered.calls else ()
        dialogue = Dialogue((QUESTION, *turns), tools=tools, template_args=covered.args)
        return own.render(dialogue, NOW).text

    whole, prompt = render(turn), render()
    said = render(Turn("assistant", (Text(SIGN),)))
    tail = said[said.rindex(SIGN) + len(SIGN) :]
    has_calls = any(isinstance(part, ToolCall) for part in turn.parts)
    if covered.end and has_calls:
        whole = whole[: whole.rindex(covered.end)]
    else:
        assert whole.endswith(tail), f"{whole[-200:]!r} does not end with {tail!r}"
        whole = whole[: len(whole) - len(tail)]
    if covered.head:
        start = whole.index(covered.head, whole.index(ASKED)) + len(covered.head)
    else:
        assert whole.startswith(prompt), f"{whole!r:.600} does not begin with {prompt!r:.600}"
        start = len(prompt)
    return whole[:start], whole[start:]


def setup_of(maker: ParserMaker, covered: Covered, before: str) -> ParserSetup:
    return ParserSetup(tools=covered.tools, phase=maker.phase(before))


def events_of(maker: ParserMaker, setup: ParserSetup, pieces: list[str]) -> list[PartEvent]:
    parser = maker.parser(setup)
    events = [event for piece in pieces for event in parser.push(Piece(piece))]
    events += parser.flush()
    assert not parser.flush()
    return events


def parts_of(events: list[PartEvent]) -> list[Part]:
    order = Order()
    for event in (Started(0), *events):
        order.step(event)
    assert all(event.text for event in events if isinstance(event, PartDelta))
    return list(fold([Started(0), *events]).choices[0].parts)


def comparable(parts: list[Part], *, exact: bool) -> list[tuple[object, ...]]:
    """Calls by their arguments' text, or by value, in which 1 is not True and 1.0 is not 1."""
    found: list[tuple[object, ...]] = []
    for part in parts:
        text = part.text
        if part.kind == "tool_call" and not exact:
            text = repr(json.loads(text))
        found.append((part.kind, part.name, text, part.complete))
    return found


def wanted_of(turn: Turn) -> list[Part]:
    found = []
    for part in turn.parts:
        match part:
            case Reasoning(text):
                found.append(Part("reasoning", text))
            case Text(text):
                found.append(Part("text", text))
            case ToolCall(name=name, arguments=arguments):
                found.append(Part("tool_call", arguments, name=name))
    return found


def cuttings(text: str) -> Iterator[list[str]]:
    """Whole, by character, in words, and 20 random ways."""
    yield [text]
    yield list(text)
    yield [text[at : at + 4] for at in range(0, len(text), 4)]
    for seed in range(20):
        chance = random.Random(seed)
        cuts = sorted(chance.choices(range(len(text) + 1), k=chance.randint(1, 8)))
        yield [text[a:b] for a, b in zip((0, *cuts), (*cuts, len(text)), strict=True)]


def edges(covered: Covered) -> Iterator[Turn]:
    """Each kind of white space about what is said, where it is not declared to be taken off."""
    for space in " \t\n":
        said = f"{space}x{space}"
        text, thought = said.strip(covered.trims), said.strip(covered.thought_trims)
        yield turn_of(covered, thought, text, [])


def over_answers(
    maker: ParserMaker, covered: Covered, check: Callable[[Turn, ParserSetup, str], None]
) -> None:
    own = template_of(covered)
    strategy = turns(maker, covered) if covered.turns is None else covered.turns

    @share(12)
    @given(strategy)
    def run(turn: Turn) -> None:
        before, text = answer(own, maker, covered, turn)
        check(turn, setup_of(maker, covered, before), text)

    run()


def rendered_turns_are_read_again(maker: ParserMaker, covered: Covered) -> None:
    """Law 1."""

    def check(turn: Turn, setup: ParserSetup, text: str) -> None:
        parts = parts_of(events_of(maker, setup, [text]))
        exact = covered.exact and not covered.rewrites
        assert comparable(parts, exact=exact) == comparable(wanted_of(turn), exact=exact), text

    if covered.turns is None:
        for turn in edges(covered):
            before, text = answer(template_of(covered), maker, covered, turn)
            check(turn, setup_of(maker, covered, before), text)
    over_answers(maker, covered, check)


def any_cutting_gives_the_same(maker: ParserMaker, covered: Covered) -> None:
    """Law 2, with answers put behind each other, text between them."""

    def check(turn: Turn, setup: ParserSetup, text: str) -> None:
        shown = text if len(text) % 2 else f"{text} and\n{text}"
        whole = parts_of(events_of(maker, setup, [shown]))
        for pieces in cuttings(shown):
            assert parts_of(events_of(maker, setup, pieces)) == whole, pieces

    over_answers(maker, covered, check)


def saved_states_go_on_the_same(maker: ParserMaker, covered: Covered) -> None:
    """Law 3: events are the same to the byte; the state is under 1 KiB outside of calls, and
    inside a call with a long string."""

    def check(turn: Turn, setup: ParserSetup, text: str) -> None:
        pieces = [text[at : at + 3] for at in range(0, len(text), 3)]
        parser, events = maker.parser(setup), []
        for piece in pieces:
            events += parser.push(Piece(piece))
            state = msgspec.msgpack.encode(parser.save())
            if parser.phase == "content":
                assert len(state) <= STATE
            fresh = maker.parser(setup)
            fresh.restore(msgspec.msgpack.decode(state))
            assert msgspec.msgpack.encode(fresh.save()) == state
            assert fresh.phase == parser.phase
            parser = fresh
        events += parser.flush()
        wanted = events_of(maker, setup, pieces)
        assert msgspec.msgpack.encode(events) == msgspec.msgpack.encode(wanted)

    over_answers(maker, covered, check)
    if covered.calls and covered.is_flat:
        _check_long_call(maker, covered)


def _check_long_call(maker: ParserMaker, covered: Covered) -> None:
    arguments = json.dumps({"text": "long words " * 2000})
    turn = Turn("assistant", (ToolCall("call00001", covered.tools[0].name, arguments),))
    before, text = answer(template_of(covered), maker, covered, turn)
    parser = maker.parser(setup_of(maker, covered, before))
    for at in range(0, len(text), 50):
        parser.push(Piece(text[at : at + 50]))
        assert len(msgspec.msgpack.encode(parser.save())) <= STATE


def what_is_broken_is_never_repaired(maker: ParserMaker, covered: Covered) -> None:
    """Law 4: nothing raises; of an answer that is cut off, nothing is read that is not in it."""

    def check(turn: Turn, setup: ParserSetup, text: str) -> None:
        whole = parts_of(events_of(maker, setup, [text]))
        chance = random.Random(len(text))
        for end in {0, len(text), *chance.choices(range(len(text) + 1), k=12)}:
            _check_cut(text[:end], parts_of(events_of(maker, setup, [text[:end]])), whole)
        bits = (*maker.markers, "{", "}", '"', "\\", "\n", "x")
        for _ in range(8):
            at, to = sorted(chance.choices(range(len(text) + 1), k=2))
            broken = text[:at] + chance.choice(bits) + text[min(to, at + 9) :]
            parts = parts_of(events_of(maker, setup, [broken]))
            assert parts == parts_of(events_of(maker, setup, list(broken))), broken
            letters = iter(broken)
            visible = "".join(part.text for part in parts if part.kind != "tool_call")
            assert all(letter in letters for letter in visible), (visible, broken)
            for part in parts:
                if part.kind == "tool_call" and covered.exact:
                    assert part.text == "{}" or part.text in broken

    over_answers(maker, covered, check)


def _check_cut(text: str, parts: list[Part], whole: list[Part]) -> None:
    for k, part in enumerate(parts):
        full = whole[k] if k < len(whole) else None
        is_same = full is not None and (part.kind, part.name) == (full.kind, full.name)
        if full is not None and is_same and full.text.startswith(part.text):
            if part.kind == "tool_call" and part.complete:
                assert part.text == full.text, text
            continue
        # The beginning of a marker, or white space before one, which may be text for all one knows.
        assert part.kind != "tool_call", (part, text)
        assert k == len(parts) - 1, (part, text)
        said = full.text if full is not None and is_same else ""
        assert part.text.removeprefix(said) in text, (part, text)


def arguments_are_passed_through(maker: ParserMaker, covered: Covered) -> None:
    """Law 5, for JSON shapes: an odd but right spelling comes out as it was written. What is
    converted by a schema is compared in law 1, by value."""
    if not covered.exact or not covered.calls:
        return
    plain = json.dumps({"text": SIGN})
    turn = Turn("assistant", (ToolCall("call00001", covered.tools[0].name, plain),))
    before, text = answer(template_of(covered), maker, covered, turn)
    assert plain in text
    for odd in (
        '{ "text" :"\\u00e9\\/\\ud83c\\udf0a" , "count":1.0e5,"x":[ ],"y":-0, "y":0.10}',
        '{"text":"","count":123456789012345678901234567890,"share":1E400}',
        '{\n  "text": "a",\n\t"map": {\n }\n}',
        "{}",
        '{"text": "' + "".join(m for m in maker.markers if '"' not in m) + '"}',
    ):
        setup = setup_of(maker, covered, before)
        for pieces in ([text.replace(plain, odd)], list(text.replace(plain, odd))):
            parts = parts_of(events_of(maker, setup, pieces))
            assert [part.text for part in parts if part.kind == "tool_call"] == [odd]
            assert all(part.complete for part in parts)


def no_client_makes_a_marker(maker: ParserMaker, covered: Covered) -> None:
    """Law 6: in questions, answers, results and arguments of earlier turns."""
    renderer = Renderer(BytesTokenizer(), template_of(covered), maker, model="m")

    def counts(text: str) -> dict[str, int]:
        call = ToolCall("call00001", covered.tools[0].name, json.dumps({"text": text}))
        turns = (
            Turn("user", (Text(f"a {text} b"),)),
            Turn("assistant", (Text(f"c {text} d"),)),
            Turn("user", (Text(f"e {text}"),)),
            *(
                (
                    Turn("assistant", (call,)),
                    Turn("tool", (ToolResult("call00001", (Text(f"g {text} h"),)),)),
                )
                if covered.calls
                else ()
            ),
        )
        tools = covered.tools if covered.calls else ()
        dialogue = Dialogue(turns, tools=tools, template_args=covered.args)
        shown = renderer.render(dialogue, NOW).text
        return {marker: shown.count(marker) for marker in (*maker.markers, *maker.stop_strings)}

    plain = counts("harmless")
    for marker in (*maker.markers, *maker.stop_strings):
        for text in (marker, marker * 2, f"{marker[: len(marker) // 2]}{marker}"):
            try:
                assert counts(text) == plain, text
            except RequestError as error:
                raise AssertionError(f"{covered.template} refuses {text!r}: {error}") from error


LAWS: tuple[Law, ...] = (
    rendered_turns_are_read_again,
    any_cutting_gives_the_same,
    saved_states_go_on_the_same,
    what_is_broken_is_never_repaired,
    arguments_are_passed_through,
    no_client_makes_a_marker,
)
