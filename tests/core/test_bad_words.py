"""Words that are biased out: those whose spellings hold a banned token, and no others."""

from __future__ import annotations

from tokenwire.core.bad_words import banned_ids
from tokenwire.core.ports.tokenizer import NO_SHIELDS, Tokenizer
from tokenwire.core.prompt import Shields
from tokenwire.core.token_ids import TokenIds

PIECES = ("cat", " cat", "dog", " ", "h", "en", " hen")


class Greedy(Tokenizer):
    """The longest of PIECES first."""

    def encode(self, text: str, shields: Shields = NO_SHIELDS) -> TokenIds:
        ids = []
        while text:
            piece = max((each for each in PIECES if text.startswith(each)), key=len)
            ids.append(PIECES.index(piece))
            text = text[len(piece) :]
        return TokenIds(ids)

    def token_bytes(self, id: int) -> bytes:
        return PIECES[id].encode()


def test_a_word_of_one_token_with_and_without_a_space() -> None:
    assert banned_ids(["cat"], Greedy()) == ((0, 1), True)


def test_a_spelling_that_holds_a_banned_token_is_not_left() -> None:
    assert banned_ids(["dog"], Greedy()) == ((2,), True)


def test_a_word_of_several_tokens_is_left() -> None:
    assert banned_ids(["hen", "cat"], Greedy()) == ((0, 1, 6), False)


def test_a_word_that_begins_with_its_space() -> None:
    assert banned_ids([" cat"], Greedy()) == ((1,), True)
