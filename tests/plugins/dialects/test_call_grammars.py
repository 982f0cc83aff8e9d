"""Every grammar of calls against xgrammar: it takes what the family's template renders, and what it
lets through is read as exactly such calls."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.examples import share
from tests.plugins.dialects import laws
from tests.plugins.dialects.cohere import test_cohere_laws as cohere
from tests.plugins.dialects.deepseek import test_laws as deepseek
from tests.plugins.dialects.functionary import test_functionary_laws as functionary
from tests.plugins.dialects.gemma import test_gemma_laws as gemma
from tests.plugins.dialects.glm.test_laws import COVERED as GLM
from tests.plugins.dialects.kimi.test_laws import CASES as KIMI
from tests.plugins.dialects.llama.test_laws import COVERED as LLAMA
from tests.plugins.dialects.minimax.test_laws import COVERED as MINIMAX
from tests.plugins.dialects.mistral.test_laws import COVERED as MISTRAL
from tests.plugins.dialects.muse import test_laws as muse
from tests.plugins.dialects.prefixed.test_laws import COVERED as PREFIXED
from tests.plugins.dialects.qwen3_coder.test_laws import COVERED as QWEN3_CODER
from tests.plugins.dialects.test_hostile_answers import MAKERS, read
from tokenwire.core.constraints import held
from tokenwire.core.dialogue import Dialogue, ToolCall, ToolChoice, ToolSpec, Turn
from tokenwire.core.ports.dialect import ParserMaker, ParserSetup
from tokenwire.core.prompt import Piece
from tokenwire.core.tokens import EngineCard

pytest.importorskip("torch")
xgrammar = pytest.importorskip("xgrammar")
pytestmark = pytest.mark.torch

CARD = EngineCard("e", 512, 100, capabilities=("grammar:structural_tag",))
SCHEMA = json.dumps({
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "flag": {"type": "boolean"},
        "list": {"type": "array", "items": {"type": "integer"}},
        "map": {"type": "object", "properties": {"name": {"type": "string"}}},
    },
    "required": ["count"],
    "additionalProperties": False,
})  # fmt: skip
TOOLS = (ToolSpec("f", "Does it.", SCHEMA), ToolSpec("get_tide", "Other.", SCHEMA))
CHOICES = (
    ToolChoice("required"),
    ToolChoice("required", parallel=False),
    ToolChoice("named", ("f",)),
    ToolChoice("named", ("f",), parallel=False),
    ToolChoice("allowed", ("f", "get_tide"), required=True),
)
EOS = 0
KEPT = 96
"""Steps of a walk before it looks for an end."""
LIMIT = 600

OWN_WORDS = {"qwen3_coder": ("flag",), "step3p5": ("flag",), "seed_oss": ("flag", "map"),
             "minicpm5": ("map",)}  # fmt: skip
"""Arguments that templates print as Python does, where the grammar has JSON (docs/dialects)."""
CLOSERS = {
    "qwen_xml": "</parameter>",
    "glm_xml": "</arg_value>",
    "minimax_xml": "</parameter>",
    "deepseek_xml": "</｜DSML｜parameter>",  # noqa: RUF001
    "deepseek_v4_1_xml": "</｜DSML｜ parameter>",  # noqa: RUF001
    "kimi_k3_xml": "<|close|>argument<|sep|>",
}
"""What ends a value in a style."""
FREE = {"gemma4", "functiongemma"}
"""Arguments of which engines know no style: they are held to their markers alone."""


def cases() -> Iterator[tuple[str, ParserMaker, laws.Covered]]:
    yield "cohere", MAKERS["cohere"], cohere.R7B
    yield "cohere", MAKERS["cohere"], cohere.NORTH
    yield "command_r", MAKERS["command_r"], cohere.R_PLUS
    for name, covered in deepseek.COVERED.items():
        yield f"deepseek_{name}", deepseek.MAKERS[name], covered[-1]
    yield "functionary_v3_1", MAKERS["functionary_v3_1"], functionary.TAGGED
    yield "functionary_v3_2", MAKERS["functionary_v3_2"], functionary.MESSAGES
    yield "gemma4", MAKERS["gemma4"], gemma.COVERED[0]
    for covered, name in (*GLM, *MINIMAX, *QWEN3_CODER):
        yield name, MAKERS[name], covered
    yield "hermes", MAKERS["hermes"], laws.Covered("Qwen-Qwen3-0.6B")
    yield "hermes", MAKERS["hermes"], laws.Covered("Qwen-Qwen2.5-7B-Instruct", thinks=False)
    for maker, covered in KIMI:
        yield "kimi", maker, covered
    for name, covered in (*LLAMA[:1], *MISTRAL, *PREFIXED):
        if covered.calls and covered.template != "GigaChat3-10B-A1.8B":
            yield name, MAKERS[name], covered
    # Its template writes a message for each call, and the grammar several calls in one.
    yield "muse", MAKERS["muse"], replace(muse.COVERED, calls=1)


CASES = tuple(cases())


def grammar_of(maker: ParserMaker, choice: ToolChoice) -> str:
    dialogue = Dialogue((laws.QUESTION,), tools=TOOLS, tool_choice=choice)
    found = held(dialogue, maker, CARD)
    assert found.constraint is not None, found.ignored
    return found.constraint.text


class Walker:
    """One vocabulary, and matchers over it."""

    def __init__(self, words: list[str]) -> None:
        characters = [chr(code) for code in (10, *range(32, 127))]
        odd = sorted({c for word in words for c in word if c not in characters})
        self.tokens = ["<eos>", *dict.fromkeys((*characters, *odd, *words))]
        table = [token.encode() for token in self.tokens]
        info = xgrammar.TokenizerInfo(
            table, vocab_type=xgrammar.VocabType.RAW, vocab_size=len(table), stop_token_ids=[EOS]
        )
        self._compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=True)

    def matcher(self, text: str) -> Any:
        return xgrammar.GrammarMatcher(self._compiler.compile_structural_tag(text))

    def walk(self, text: str, chance: random.Random) -> str | None:
        """An answer that the grammar lets through; None where none ended in time."""
        matcher, said = self.matcher(text), []
        mask = xgrammar.allocate_token_bitmask(1, len(self.tokens))
        for step in range(LIMIT):
            matcher.fill_next_token_bitmask(mask)
            bits = mask[0].tolist()
            may = [at for at in range(len(self.tokens)) if bits[at // 32] >> (at % 32) & 1]
            if may == [EOS] or (EOS in may and (step > KEPT or chance.random() < 0.3)):
                return "".join(said)
            may = [at for at in may if at != EOS]
            ends = [at for at in may if len(self.tokens[at]) > 1 or self.tokens[at] in '"}])']
            id = chance.choice(ends if ends and (step > KEPT or chance.random() < 0.3) else may)
            assert matcher.accept_token(id)
            said.append(self.tokens[id])
        return None


def bytewise(text: str, answer: str) -> str:
    """ "" where the grammar takes the answer, whatever the tokens; else where it stops."""
    table = [bytes([byte]) for byte in range(256)]
    info = xgrammar.TokenizerInfo(
        [*table, b"<eos>"], vocab_type=xgrammar.VocabType.RAW, vocab_size=257, stop_token_ids=[256]
    )
    compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
    matcher = xgrammar.GrammarMatcher(compiler.compile_structural_tag(text))
    for at, byte in enumerate(answer.encode()):
        if not matcher.accept_token(byte):
            return answer.encode()[max(0, at - 40) : at + 20].decode(errors="replace")
    return "" if matcher.accept_token(256) else "it is not over"


def given_arguments(name: str, maker: ParserMaker) -> st.SearchStrategy[dict[str, object]]:
    marks = (*maker.markers, *maker.stop_strings, "<", "]", "'", '"', "\\")
    letters = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=6)
    # Why not markers: no grammar tells a closing tag in a value from the value's end.
    strings = letters.map(str.strip).filter(lambda text: not any(m in text for m in marks))
    optional: dict[str, st.SearchStrategy[object]] = {
        "text": strings.filter(bool),
        "flag": st.booleans(),
        "list": st.lists(st.integers(-99, 99), min_size=1, max_size=2),
        "map": st.fixed_dictionaries({"name": strings.filter(bool)}),
    }
    kept = {key: each for key, each in optional.items() if key not in OWN_WORDS.get(name, ())}
    order = ("text", "count", "flag", "list", "map")
    drawn = st.fixed_dictionaries({"count": st.integers(-(2**53), 2**53)}, optional=kept)
    return drawn.map(lambda found: {key: found[key] for key in order if key in found})


@pytest.mark.parametrize(("name", "maker", "covered"), CASES, ids=lambda value: str(
    value if isinstance(value, str) else getattr(value, "template", "")
))  # fmt: skip
def test_what_a_template_renders_is_taken(
    name: str, maker: ParserMaker, covered: laws.Covered
) -> None:
    @share(10)
    @given(st.lists(given_arguments(name, maker), min_size=1, max_size=2), st.sampled_from(CHOICES))
    def check(arguments: list[dict[str, object]], choice: ToolChoice) -> None:
        most = covered.calls if choice.parallel else 1
        names = ["f"] * 2 if choice.mode == "named" else ["f", "get_tide"]
        calls = [
            ToolCall("call00001", tool, json.dumps(given, ensure_ascii=False))
            for tool, given in zip(names, arguments[:most], strict=False)
        ]
        turn = Turn("assistant", tuple(calls))
        text = laws.answer(laws.template_of(covered), maker, covered, turn)[1]
        grammar = maker.call_grammar(TOOLS)
        assert grammar is not None
        assert not bytewise(grammar_of(maker, choice), text[text.find(grammar.trigger) :].rstrip())

    check()


WITH_GRAMMAR = [name for name, maker in MAKERS.items() if maker.call_grammar(TOOLS) is not None]


@pytest.mark.parametrize("choice", CHOICES, ids=lambda choice: f"{choice.mode}-{choice.parallel}")
@pytest.mark.parametrize("name", [name for name in WITH_GRAMMAR if name not in FREE])
def test_what_a_grammar_lets_through_is_read_as_calls(name: str, choice: ToolChoice) -> None:
    maker = MAKERS[name]
    grammar, text = maker.call_grammar(TOOLS), grammar_of(maker, choice)
    assert grammar is not None
    spellings = grammar.calls
    ends = [call.end for call in spellings] + [call.begin for call in spellings]
    ends += [call.param.end for call in spellings if call.param]
    ends += [CLOSERS[call.style] for call in spellings if call.style in CLOSERS]
    words = [word for word in (*maker.markers, *ends, grammar.begin, grammar.end) if word]
    walker = Walker(words)
    found = 0
    for seed in range(6):
        answer = walker.walk(text, random.Random(seed))
        if answer is None:
            continue
        found += 1
        parts = laws.parts_of(read(maker, ParserSetup(tools=TOOLS), [Piece(answer)]))
        assert parts, answer
        for part in parts:
            assert (part.kind, part.complete) == ("tool_call", True), (parts, answer)
            assert part.name in (choice.names or ("f", "get_tide")), answer
            check_fits(json.loads(part.text), answer)
        assert choice.parallel or len(parts) == 1
    assert found, "no walk ended"


def check_fits(arguments: Any, answer: str) -> None:
    kinds = {"text": str, "count": int, "flag": bool, "list": list, "map": dict}
    assert isinstance(arguments, dict)
    assert "count" in arguments, answer
    for key, value in arguments.items():
        assert type(value) is kinds[key], (key, value, answer)
    assert all(type(each) is int for each in arguments.get("list", [])), answer
