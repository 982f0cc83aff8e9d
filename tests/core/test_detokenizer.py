"""The detokenizer over a vocabulary that each test makes up."""

from __future__ import annotations

from codecs import utf_8_decode
from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenwire.core.detokenizer import Detokenizer, PieceTable
from tokenwire.core.ports.tokenizer import NO_SHIELDS, AddedToken, Tokenizer, Vocabulary
from tokenwire.core.token_ids import TokenIds

END = AddedToken(1000, "<end>", True)
PLAIN = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.binary(max_size=5)
ODD = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=4), max_leaves=6)


class Made(Tokenizer):
    """Ids 0, 1, ... have the given bytes; 1000 is the special token <end>."""

    def __init__(self, *tokens: bytes, strips: bool = False) -> None:
        self.tokens = dict(enumerate(tokens))
        self.minted_ids = {}
        self.asked = []
        self.vocabulary = Vocabulary(1001, (END,), strips_leading_space=strips)

    def encode(self, text, shields=NO_SHIELDS):
        return TokenIds()

    def token_bytes(self, id):
        self.asked.append(id)
        return self.minted_ids[id][0] if id in self.minted_ids else self.tokens[id]

    def minted(self, id):
        return self.minted_ids.get(id)


def pieces(*tokens: bytes, ids=None, strips=False):
    machine = Detokenizer(PieceTable(Made(*tokens, strips=strips)))
    return [machine.push(id).text for id in (range(len(tokens)) if ids is None else ids)]


def test_a_character_over_several_ids_comes_with_its_last_byte():
    assert pieces(b"ok ", b"\xf0\x9f", b"\x8c", b"\x8a") == ["ok ", "", "", "🌊"]


def test_an_id_that_ends_one_character_and_starts_the_next_sends_the_finished_one():
    assert pieces(b"\xf0\x9f\x8c", b"\x8a\xe6", b"\xbd\xae") == ["", "🌊", "潮"]


def test_a_character_cut_off_at_the_end_is_dropped():
    assert pieces(b"Hello", b"! ", b"\xf0\x9f\x98") == ["Hello", "! ", ""]


def test_a_character_cut_off_by_a_special_token_is_dropped():
    made = Made(b"a\xe6", b"\xbd\xae")
    machine = Detokenizer(PieceTable(made))
    got = [machine.push(id) for id in (0, 1000, 1)]
    assert [piece.text for piece in got] == ["a", "<end>", "\ufffd\ufffd"]
    assert [piece.special for piece in got] == [False, True, False]
    assert [piece.id for piece in got] == [0, 1000, 1]


@pytest.mark.parametrize(
    "tokens",
    [
        (b"\xff", b"a"),
        (b"a\x80b",),
        (b"\xe6", b"a"),
        (b"\xe6\xbd", b"\xe6\xbd\xae"),
        (b"\xed", b"\xa0\x80"),
        (b"\xc0", b"\xaf"),
        (b"\xf0\x9f", b"\xf0\x9f", b"\x8c\x8a"),
    ],
)
def test_bytes_that_can_never_be_a_character_are_replaced_as_one_decoding_would(tokens):
    assert "".join(pieces(*tokens)) == b"".join(tokens).decode(errors="replace")


@given(st.lists(st.one_of(st.binary(max_size=5), st.text(max_size=3).map(str.encode)), max_size=9))
def test_any_cut_of_any_bytes_is_the_whole_decoded(tokens):
    whole, _ = utf_8_decode(b"".join(tokens), "replace", False)
    assert "".join(pieces(*tokens)) == whole
    assert "".join(pieces(b"".join(tokens))) == whole


@given(st.lists(st.binary(max_size=5), max_size=9), st.booleans())
def test_a_machine_restored_at_any_id_goes_on_the_same(tokens, strips):
    table = PieceTable(Made(*tokens, strips=strips))
    wanted = pieces(*tokens, strips=strips)
    machine = Detokenizer(table)
    for id in range(len(tokens)):
        state = msgspec.msgpack.encode(machine.save())
        assert len(state) <= 8
        machine = Detokenizer(table)
        machine.restore(msgspec.msgpack.decode(state))
        assert machine.push(id).text == wanted[id]


@pytest.mark.parametrize("state", [None, (), (b"", 1), (7, False), (b"abcd", False), b""])
def test_a_state_that_is_none_is_refused(state):
    with pytest.raises(msgspec.ValidationError):
        Detokenizer(PieceTable(Made())).restore(state)


@given(ODD)
def test_odd_states_are_refused_in_one_way(state):
    with suppress(msgspec.ValidationError):
        Detokenizer(PieceTable(Made())).restore(state)


def test_an_answer_loses_one_leading_space_where_the_vocabulary_says_so():
    assert pieces(b" the", b" cat", strips=True) == ["the", " cat"]
    assert pieces(b"", b"  x", strips=True) == ["", " x"]
    assert pieces(b"\xe6", b"\xbd\xae x", b" y", strips=True) == ["", "潮 x", " y"]
    assert pieces(b" the", b" cat") == [" the", " cat"]


def test_an_id_that_is_none_is_a_key_error():
    machine = Detokenizer(PieceTable(Made(b"a")))
    with pytest.raises(KeyError):
        machine.push(7)
    assert machine.push(0).text == "a"


def test_one_table_serves_all_machines_and_asks_once():
    made = Made(b"a", b"\xe6", b"\xbd\xae")
    table = PieceTable(made)
    assert Detokenizer(table).push(0) is table.detokenizer().push(0)
    assert table.decode([0, 1, 2]) == "a潮"
    assert table.decode([0, 1, 2]) == "a潮"
    assert made.asked.count(0) == 1


def test_minted_ids_are_never_kept():
    made = Made(b"a")
    table = PieceTable(made)
    made.minted_ids = {70000: (b"one", False), 70001: (b"<x>", True), 70002: (b"\xe6", False)}
    assert table.decode([70000, 70001, 70002]) == "one<x>"
    assert table.detokenizer().push(70001).special
    made.minted_ids = {
        70000: (b"two", True),
        70001: (b"\xf0\x9f", False),
        70002: (b"\x8c\x8a", False),
    }
    assert table.decode([70000, 70001, 70002]) == "two🌊"
    assert table.detokenizer().push(70000).special
