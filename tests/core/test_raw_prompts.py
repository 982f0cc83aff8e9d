"""Prompts without a template: text stays text, texts begin as they should, gaps are asked for."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tokenizers import Tokenizer as Library

from tests.real_tokenizers import published
from tokenwire.core.byte_text import BOS, EOS, PAD, ByteText
from tokenwire.core.call import RawPrompt
from tokenwire.core.errors import RequestError
from tokenwire.core.fim import GAPS, Gap, gap_of
from tokenwire.core.host import Host, lone_services
from tokenwire.core.ports.tokenizer import NO_SHIELDS, Tokenizer
from tokenwire.core.prompt import Prompt, Shields, Span
from tokenwire.core.raw_prompts import RawPrompts
from tokenwire.core.token_ids import TokenIds

SPECIALS = (BOS, EOS, PAD)


class Bytes(Tokenizer):
    """Bytes and special tokens; `begin`: what stands before a text."""

    def __init__(self, *more: str, begin: tuple[int, ...] = (), end: tuple[int, ...] = ()) -> None:
        self._text = ByteText((*SPECIALS, *more))
        self.vocabulary = replace(self._text.vocabulary(), begin_ids=begin, end_ids=end)

    def encode(self, text: str, shields: Shields = NO_SHIELDS) -> TokenIds:
        return self._text.encode(text, shields)

    def token_bytes(self, id: int) -> bytes:
        return self._text.token_bytes(id)


def prompts(tokenizer: Tokenizer, *, takes_specials: bool = False) -> RawPrompts:
    return RawPrompts(tokenizer, model="m", fingerprint="f", takes_specials=takes_specials)


def prompt(tokenizer: Tokenizer, raw: RawPrompt, **how: bool) -> Prompt:
    made = prompts(tokenizer, **how)
    text = made.text(raw)
    ids = None if text is None else tokenizer.encode(text.text, text.shields)
    return made.prompt(raw, ids)


SPELLINGS = st.sampled_from(("<eos>", "<bos>", "<", "eos>", "a", "潮", "\U000f0000", "\U000f0001"))


@given(st.lists(SPELLINGS, min_size=1, max_size=8).map("".join))
def test_what_a_client_writes_is_text(text: str) -> None:
    made = prompt(Bytes(), RawPrompt(text))
    assert max(made.ids) < 256
    assert bytes(made.ids.tolist()).decode() == text == made.text
    assert made.spans == (Span(0, len(made.ids), "client"),)


def test_special_tokens_where_the_model_takes_them() -> None:
    assert prompt(Bytes(), RawPrompt("a<eos>"), takes_specials=True).ids.tolist() == [97, 257]
    texts = prompts(Bytes(), takes_specials=True)
    assert texts.bare("<eos>", parse_special=False).shields
    assert not prompts(Bytes()).bare("<eos>", parse_special=True).shields


def test_a_text_begins_as_the_tokenizer_says_and_once() -> None:
    tokenizer = Bytes(begin=(256,), end=(257,))
    assert prompt(tokenizer, RawPrompt("a")).ids.tolist() == [256, 97]
    assert prompt(tokenizer, RawPrompt("a", begin=False)).ids.tolist() == [97]
    assert prompt(tokenizer, RawPrompt("")).ids.tolist() == [256]
    assert prompt(tokenizer, RawPrompt("<bos>a"), takes_specials=True).ids.tolist() == [256, 97]
    assert prompt(tokenizer, RawPrompt(ids=(97,))).ids.tolist() == [97], "ids are as they are"
    assert prompts(tokenizer).around(TokenIds((97,))).tolist() == [256, 97, 257]


def test_ids_of_the_vocabulary_are_any_of_it() -> None:
    made = prompt(Bytes(), RawPrompt(ids=(104, 257, 0xE6, 0xBD, 0xAE, 0xE6)))
    assert made.text == "h<eos>潮", "half a character is left out"
    for ids in ((259,), (5, 2**32 - 1)):
        with pytest.raises(RequestError, match="token ids 0 to 258") as caught:
            prompt(Bytes(), RawPrompt(ids=ids))
        assert caught.value.param == "prompt"


def test_an_empty_prompt_is_refused_where_nothing_begins_it() -> None:
    with pytest.raises(RequestError, match="empty"):
        prompt(Bytes(), RawPrompt(""))


# --- gaps ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("gap", GAPS, ids=lambda gap: gap.before)
def test_every_kind_of_gap(gap: Gap) -> None:
    tokenizer = Bytes(*gap.tokens)
    assert gap_of({*SPECIALS, *gap.tokens}) == gap
    made = prompt(tokenizer, RawPrompt("one" + gap.before, suffix=gap.between + "two"))
    parts = [bytes(run).decode() for run in _runs(made.ids.tolist())]
    texts = ["one" + gap.before, gap.between + "two"]
    assert parts == (texts[::-1] if gap.suffix_first else texts), "a client writes no such token"
    assert made.text == "one" + gap.before


def _runs(ids: list[int]) -> list[list[int]]:
    """What stands between special tokens."""
    runs: list[list[int]] = [[]]
    for id_ in ids:
        if id_ < 256:
            runs[-1].append(id_)
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


def test_a_suffix_needs_tokens_and_text() -> None:
    with pytest.raises(RequestError, match="no tokens for filling a gap") as caught:
        prompt(Bytes(), RawPrompt("a", suffix="b"))
    assert caught.value.param == "suffix"
    with pytest.raises(RequestError, match="of text, not of ids"):
        prompt(Bytes(*GAPS[0].tokens), RawPrompt(ids=(1,), suffix="b"))


def test_a_vocabulary_with_half_the_tokens_fills_no_gap() -> None:
    assert gap_of({"<|fim_prefix|>", "<|fim_suffix|>"}) is None


# --- published tokenizers ------------------------------------------------------------------------


@cache
def real(name: str) -> tuple[Tokenizer, Library]:
    folder = published(name)
    built = Host().tokenizers.build("hf", {"path": str(folder)}, lone_services())
    return built, Library.from_file(str(folder / "tokenizer.json"))


@pytest.mark.parametrize("name", ["llama3_1", "qwen3"])
def test_a_text_s_ids_are_the_library_s(name: str) -> None:
    tokenizer, library = real(name)
    for text in ("Low tide at 潮 3.", " x", "\n\n"):
        assert prompt(tokenizer, RawPrompt(text)).ids.tolist() == library.encode(text).ids
        bare = library.encode(text, add_special_tokens=False).ids
        assert prompt(tokenizer, RawPrompt(text, begin=False)).ids.tolist() == bare


def test_special_tokens_of_a_published_vocabulary() -> None:
    tokenizer, library = real("qwen3")
    text = "a<|im_end|>b"
    made = prompt(tokenizer, RawPrompt(text))
    assert library.token_to_id("<|im_end|>") not in made.ids.tolist()
    assert prompts(tokenizer).spell(tuple(made.ids)) == text
    assert len(prompt(tokenizer, RawPrompt(text), takes_specials=True).ids) == 3


def test_a_gap_in_a_published_vocabulary() -> None:
    tokenizer, library = real("qwen3")
    made = prompt(tokenizer, RawPrompt("def f(x):\n", suffix="\n    return y\n"))
    wanted = "<|fim_prefix|>def f(x):\n<|fim_suffix|>\n    return y\n<|fim_middle|>"
    assert made.ids.tolist() == library.encode(wanted).ids
