"""Broken tokenizers and detokenizers, each caught by the law that it breaks."""

from __future__ import annotations

from itertools import count

import pytest
from msgspec.structs import replace

from tokenwire.core.byte_text import ByteText
from tokenwire.core.detokenizer import Detokenizer
from tokenwire.core.ports.tokenizer import NO_SHIELDS, Tokenizer
from tokenwire.core.prompt import Piece
from tokenwire.core.testing.laws import LawBroken
from tokenwire.core.testing.tokenizer_kit import LAWS, run_tokenizer_kit
from tokenwire.core.token_ids import TokenIds


class Right(Tokenizer):
    """What the mutants are made of."""

    def __init__(self) -> None:
        self.text = ByteText()
        self.vocabulary = self.text.vocabulary()

    def encode(self, text, shields=NO_SHIELDS):
        return self.text.encode(text, shields)

    def token_bytes(self, id):
        return self.text.token_bytes(id)


class EosBeyondSize(Right):
    def __init__(self) -> None:
        super().__init__()
        self.vocabulary = replace(self.vocabulary, eos_ids=(900,))


class BytesForAnyId(Right):
    def token_bytes(self, id):
        return super().token_bytes(id) if 0 <= id < self.vocabulary.size else b""


class CountsItsCalls(Right):
    def __init__(self) -> None:
        super().__init__()
        self.calls = count()

    def encode(self, text, shields=NO_SHIELDS):
        ids = super().encode(text, shields)
        return TokenIds([*ids, 32]) if next(self.calls) % 7 == 6 else ids


class PlainList(Right):
    def encode(self, text, shields=NO_SHIELDS):
        return list(super().encode(text, shields))


class Trims(Right):
    def encode(self, text, shields=NO_SHIELDS):
        return super().encode(text.rstrip(" "), shields)


class SeesNoSpecials(Right):
    def encode(self, text, shields=NO_SHIELDS):
        values = {ord(point): value for point, value in shields.items()}
        return TokenIds(list(text.translate(values).encode()))


class SpecialsWithoutBytes(Right):
    def token_bytes(self, id):
        data = super().token_bytes(id)
        return data if id < 256 else b""


class OpensShieldsFirst(Right):
    def encode(self, text, shields=NO_SHIELDS):
        return super().encode(text.translate({ord(p): v for p, v in shields.items()}))


class ShieldsWholeSpellingsOnly(Right):
    def encode(self, text, shields=NO_SHIELDS):
        whole = set(self.text._ids)
        values = {ord(p): v for p, v in shields.items() if v not in whole}
        hidden = {p: v for p, v in shields.items() if v in whole}
        return super().encode(text.translate(values), hidden)


class SpaceAfterShields(Right):
    def encode(self, text, shields=NO_SHIELDS):
        ids = super().encode(text, shields)
        joined = bool(shields) and not any(point in text for point in shields)
        return TokenIds([*ids, 32]) if joined else ids


class AllIsTextBesideShields(SeesNoSpecials):
    def encode(self, text, shields=NO_SHIELDS):
        if any(point in text for point in shields):
            return super().encode(text, shields)
        return Right.encode(self, text, shields)


class ManyWithoutShields(Right):
    def encode_many(self, texts):
        return [self.encode(text) for text, _ in texts]


class Bare:
    """A detokenizer without saving, over token bytes."""

    def __init__(self, table) -> None:
        self.table = table
        self.data = b""
        self.sent = ""

    def push(self, id):
        self.data += self.table.token_bytes(id)
        text = self.data.decode(errors="ignore")
        piece, self.sent = text[len(self.sent) :], text
        return Piece(piece, False, id)

    def save(self):
        return [self.data, self.sent]

    def restore(self, state):
        self.data, self.sent = state


class Late:
    """Sends the rest of a run of one letter when another comes."""

    def __init__(self, table) -> None:
        self.inner = Detokenizer(table)
        self.last = self.held = ""

    def push(self, id):
        text = self.inner.push(id).text
        if text.isalpha() and text == self.last:
            self.held += text
            return Piece("", False, id)
        text, self.last, self.held = self.held + text, text, ""
        return Piece(text, False, id)

    def save(self):
        return self.inner.save()

    def restore(self, state):
        self.inner.restore(state)


class Forgets:
    """Saves nothing."""

    def __init__(self, table) -> None:
        self.inner = Detokenizer(table)

    def push(self, id):
        return self.inner.push(id)

    def save(self):
        return None

    def restore(self, state):
        pass


def shared():
    """A detokenizer whose pending bytes are everybody's."""
    last = {}

    class Shared(Forgets):
        def __init__(self, table) -> None:
            super().__init__(table)
            last.clear()

        def push(self, id):
            if "state" in last:
                self.inner.restore(last["state"])
            piece = self.inner.push(id)
            last["state"] = self.inner.save()
            return piece

        def save(self):
            return self.inner.save()

        def restore(self, state):
            self.inner.restore(state)

    return Shared


@pytest.mark.parametrize(
    ("mutant", "law"),
    [
        (EosBeyondSize, "vocabulary"),
        (BytesForAnyId, "vocabulary"),
        (CountsItsCalls, "pure"),
        (PlainList, "pure"),
        (Trims, "round_trip"),
        (SeesNoSpecials, "added_tokens"),
        (SpecialsWithoutBytes, "joined_bytes"),
        (OpensShieldsFirst, "shields_hold"),
        (ShieldsWholeSpellingsOnly, "fragments_stay_apart"),
        (SpaceAfterShields, "shields_change_nothing"),
        (AllIsTextBesideShields, "shields_let_pass"),
        (ManyWithoutShields, "many_as_one"),
    ],
)
def test_a_broken_tokenizer_is_caught_by_its_law(mutant, law):
    with pytest.raises(LawBroken) as caught:
        run_tokenizer_kit(mutant(), examples=20)
    assert caught.value.law == law
    assert caught.value.port == "tokenizer"


@pytest.mark.parametrize(
    ("machine", "law"),
    [
        (Late, "never_half_a_character"),
        (Bare, "saved_anywhere"),
        (Forgets, "saved_anywhere"),
        (shared(), "interleaved"),
    ],
)
def test_a_broken_detokenizer_is_caught_by_its_law(machine, law):
    with pytest.raises(LawBroken) as caught:
        run_tokenizer_kit(Right(), machine=machine, examples=20)
    assert caught.value.law == law


def test_what_the_mutants_are_made_of_is_right():
    run_tokenizer_kit(Right(), examples=20)


def test_laws_about_special_tokens_hold_only_where_there_are_some():
    class Plain(Right):
        def __init__(self):
            super().__init__()
            self.vocabulary = replace(self.vocabulary, added=(), bos=None, eos=None, pad=None)

    held = run_tokenizer_kit(Plain(), examples=5)
    assert set(LAWS) - set(held) == {
        "added_tokens",
        "shields_hold",
        "fragments_stay_apart",
        "shields_let_pass",
    }


def test_an_exception_is_the_law_s_too():
    class Raises(Right):
        def encode_many(self, texts):
            raise OSError("no disk")

    with pytest.raises(LawBroken, match="OSError: no disk") as caught:
        run_tokenizer_kit(Raises(), laws=["many_as_one"])
    assert caught.value.law == "many_as_one"


def test_every_law_has_a_mutant():
    marks = [
        mark
        for test in (
            test_a_broken_tokenizer_is_caught_by_its_law,
            test_a_broken_detokenizer_is_caught_by_its_law,
        )
        for mark in test.pytestmark
    ]
    caught = {law for mark in marks for _, law in mark.args[1]}
    assert caught == set(LAWS)
