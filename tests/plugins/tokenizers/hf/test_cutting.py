"""Where real tokenizers' text may be cut: the parts' ids are the whole's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.plugins.tokenizers.hf.real import NAMES, loaded
from tokenwire.core.prompt_encoder import PromptEncoder
from tokenwire.plugins.tokenizers.hf.cutting import cuts_of
from tokenwire.plugins.tokenizers.hf.file import FileToken

BITS = [
    "a",
    " b",
    "\n",
    "\n\n",
    "Zug",
    " ",
    "  ",
    "12",
    "'s",
    "é",
    "日本",
    "👍🏽",
    "\t",
    "{",
    "\r\n",
    ".",
]


@pytest.mark.parametrize("name", NAMES)
def test_text_is_the_sum_of_its_segments(name):
    tokenizer = loaded(name)
    cuts = tokenizer.cuts[:6]
    assert cuts

    @given(st.lists(st.sampled_from([*BITS, *cuts]) | st.text(max_size=6), max_size=30))
    def check(bits):
        text = "".join(bits)
        for cut in cuts:
            assert PromptEncoder(tokenizer, cut).ids(text, {}) == tokenizer.encode(text)
            at = text.find(cut)
            if at >= 0:
                shield = {"\U000f0000": cut}
                hidden = text[at:].replace(cut, "\U000f0000", 1) + cut
                whole = tokenizer.encode(text[:at] + cut + hidden, shield)
                assert PromptEncoder(tokenizer, cut).ids(text[:at] + cut + hidden, shield) == whole

    check()


@pytest.mark.parametrize("name", NAMES)
def test_long_text_is_the_sum_of_its_chunks(name):
    tokenizer = loaded(name)
    if name == "llama2":  # It has no pre-tokenizer, and tokens that span words.
        assert tokenizer.breaks is None
        return

    @given(st.lists(st.sampled_from(BITS) | st.text(max_size=9), max_size=40))
    def check(bits):
        text = "".join(bits)
        for match in tokenizer.breaks.finditer(text):
            before, after = text[: match.start()], text[match.start() :]
            parts = [*tokenizer.encode(before), *tokenizer.encode(after)]
            assert parts == [*tokenizer.encode(text)]

    check()


def test_tokens_that_reach_beyond_themselves_are_no_cuts():
    def token(content, **flags):
        return FileToken(content, special=True, **({"normalized": False} | flags))

    def encode(text):
        return [*map(ord, text)]

    assert cuts_of([token("<a>"), token("<b>")], encode) == ("<a>", "<b>")
    assert cuts_of([token("<a>", lstrip=True)], encode) == ()
    assert cuts_of([token("<a>", normalized=True)], encode) == ()
    assert cuts_of([token("<a>", single_word=True)], encode) == ()
    assert cuts_of([token("<a>"), token("<a>x")], encode) == ("<a>x",)
    assert cuts_of([token("<a>"), token(">b")], encode) == ()
    assert cuts_of([FileToken("<a>", normalized=False)], encode) == ()


def test_a_tokenizer_that_looks_across_has_no_cuts():
    def encode(text):
        return [len(text)]

    assert cuts_of([FileToken("<a>", normalized=False, special=True)], encode) == ()
