"""The small parts of `hf`: spelling, the tree of words, the probe of fastokens."""

from __future__ import annotations

import logging
import re
import sys
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from tokenwire.core.errors import ConfigError
from tokenwire.plugins.tokenizers.hf.fast import fast_encoder
from tokenwire.plugins.tokenizers.hf.spelling import byte_alphabet, spelling
from tokenwire.plugins.tokenizers.hf.words import any_of


def test_the_byte_alphabet_is_the_library_s():
    assert set(byte_alphabet().values()) == set(pre_tokenizers.ByteLevel.alphabet())
    to_bytes = spelling({"type": "ByteLevel"}).to_bytes
    letters = byte_alphabet()
    assert all(to_bytes(letters[byte]) == bytes((byte,)) for byte in range(256))
    assert to_bytes("Ġhé") == b" h\xe9"
    assert to_bytes("<\uff5ca\u2581b\uff5c>") == "<\uff5ca\u2581b\uff5c>".encode()
    assert to_bytes("é b") == "é b".encode()


def test_sentencepiece_spells_spaces_and_bytes():
    steps = [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
    ]
    form = spelling({"type": "Sequence", "decoders": steps})
    assert [form.to_bytes(token) for token in ("▁a", "<0xE6>", "<0xe6>x")] == [
        b" a",
        b"\xe6",
        b"<0xe6>x",
    ]
    assert not form.strips_leading_space
    strip = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
    assert spelling({"type": "Sequence", "decoders": [*steps, strip]}).strips_leading_space
    never = {"type": "Metaspace", "replacement": "_", "prepend_scheme": "never"}
    assert spelling(never).to_bytes("_a") == b" a"
    assert not spelling(never).strips_leading_space
    assert spelling({"type": "Metaspace"}).strips_leading_space


def test_words_are_joined_by_spaces_where_no_decoder_says_otherwise():
    assert spelling(None).to_bytes("word") == b" word"
    pieces = spelling({"type": "WordPiece", "prefix": "##"})
    assert [pieces.to_bytes(token) for token in ("play", "##ing")] == [b" play", b"ing"]
    assert pieces.strips_leading_space


def test_a_decoder_that_cannot_be_streamed_is_refused_in_words():
    for step in (
        {"type": "CTC"},
        {"type": "Strip", "content": " ", "start": 0, "stop": 1},
        {"type": "Replace", "pattern": {"Regex": "a+"}, "content": "b"},
    ):
        with pytest.raises(ConfigError, match="none that `hf` can stream"):
            spelling({"type": "Sequence", "decoders": [step]})


@given(st.lists(st.text("ab|.", max_size=4), max_size=12), st.text("ab|.x", max_size=20))
def test_the_tree_of_words_finds_what_trying_the_longest_first_finds(words, text):
    longest_first = sorted({word for word in words if word}, key=len, reverse=True)
    plain = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")
    assert any_of(words).findall(text) == plain.findall(text)


def small(tmp_path):
    library = Tokenizer(models.BPE({letter: id for id, letter in enumerate("Helo, wrd")}, []))
    library.decoder = decoders.Fuse()
    library.save(str(tmp_path / "tokenizer.json"))
    return library, tmp_path / "tokenizer.json"


def test_fastokens_is_not_used_where_it_gives_other_ids(tmp_path, caplog):
    pytest.importorskip("fastokens")
    library, path = small(tmp_path)
    library.add_tokens(["Hello"])
    assert fast_encoder(path, library) is None
    assert "not used" in caplog.text or "cannot be used" in caplog.text


def test_fastokens_that_cannot_read_the_file_is_not_used(tmp_path, caplog):
    pytest.importorskip("fastokens")
    library, path = small(tmp_path)
    path.write_text("{}")
    assert fast_encoder(path, library) is None
    assert "cannot be used" in caplog.text


def test_a_text_that_fastokens_gives_up_on_is_encoded_by_the_library(tmp_path, caplog, monkeypatch):
    library, path = small(tmp_path)

    class Encoder:
        @classmethod
        def from_file(cls, name):
            return cls()

        def encode(self, text, add_special_tokens):
            if text == "w" * 9:
                raise ValueError("Max stack size exceeded for backtracking")
            return library.encode_batch_fast([text], add_special_tokens=False)[0]

    fake = ModuleType("fastokens")
    fake.Tokenizer = Encoder
    monkeypatch.setitem(sys.modules, "fastokens", fake)
    encode = fast_encoder(path, library)
    with caplog.at_level(logging.DEBUG, logger="tokenwire.tokenizers.hf"):
        assert encode("w" * 9) == library.encode("w" * 9).ids
    assert [record.levelname for record in caplog.records] == ["DEBUG"]
    assert "gave up on 9 characters" in caplog.text
    assert encode("Held") == library.encode("Held").ids
