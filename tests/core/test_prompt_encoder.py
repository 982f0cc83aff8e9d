"""Segments: their ids are the whole text's, what was encoded is not encoded again, memory is
bounded."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from tokenwire.core.ports.tokenizer import NO_SHIELDS, AddedToken, Tokenizer, Vocabulary
from tokenwire.core.prompt_encoder import CHUNK, PromptEncoder, turn_mark
from tokenwire.core.token_ids import TokenIds

MARK = "<turn>"


class Letters(Tokenizer):
    """An id a character; keeps what it was asked."""

    vocabulary = Vocabulary(size=0x110000, added=(AddedToken(0, MARK, special=True),))
    cuts = (MARK, "<end>")
    breaks = re.compile(r"(?<=\S\n)(?=[A-Za-z])")

    def __init__(self):
        self.asked = []

    def encode(self, text, shields=NO_SHIELDS):
        self.asked.append(text)
        for point, spelling in shields.items():
            text = text.replace(point, spelling)
        return TokenIds(map(ord, text))

    def token_bytes(self, id):
        return chr(id).encode()


TEXT = st.lists(
    st.sampled_from([MARK, "<end>", "a", "line\n", "Next", " ", "é", "\U000f0000", "\U000f0001"])
).map("".join)
SHIELDS = {"\U000f0000": MARK, "\U000f0001": "<e"}


@given(TEXT, st.sampled_from([MARK, None]))
def test_ids_are_those_of_the_whole_text(text, mark):
    encoder = PromptEncoder(Letters(), mark)
    whole = Letters().encode(text, SHIELDS)
    assert encoder.ids(text, SHIELDS) == whole
    assert encoder.ids(text, SHIELDS) == whole


def test_only_what_is_new_is_encoded():
    tokenizer = Letters()
    encoder = PromptEncoder(tokenizer, MARK)
    encoder.ids(f"head{MARK}one{MARK}two", {})
    tokenizer.asked.clear()
    encoder.ids(f"head{MARK}one{MARK}two!{MARK}three", {})
    assert tokenizer.asked == [f"{MARK}two!", f"{MARK}three"]


def test_a_shield_is_part_of_what_is_remembered():
    encoder = PromptEncoder(Letters(), MARK)
    first = encoder.ids(f"{MARK}\U000f0000", {"\U000f0000": "x"})
    second = encoder.ids(f"{MARK}\U000f0000", {"\U000f0000": "y"})
    assert first != second


def test_long_segments_are_cut_at_breaks():
    tokenizer = Letters()
    text = MARK + "word\n" * CHUNK
    assert PromptEncoder(tokenizer, MARK).ids(text, {}) == Letters().encode(text)
    assert len(tokenizer.asked) > 1
    assert max(map(len, tokenizer.asked)) <= CHUNK + len("word\n")


def test_memory_is_bounded():
    encoder = PromptEncoder(Letters(), MARK, capacity=4000)
    for number in range(50):
        encoder.ids(f"{MARK}{number:010}" * 2, {})
    assert encoder._size <= 4000
    assert 10 < len(encoder._cache) < 20, "small segments count for what they take beside text"


def test_without_a_mark_nothing_is_kept():
    tokenizer = Letters()
    encoder = PromptEncoder(tokenizer, None)
    encoder.ids("a", {})
    encoder.ids("a", {})
    assert tokenizer.asked == ["a", "a"]


def test_the_mark_is_the_token_that_stands_most_often():
    assert turn_mark(Letters(), f"{MARK}a<end>{MARK}b") == MARK
    assert turn_mark(Letters(), "none") is None
