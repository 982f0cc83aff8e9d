"""The tokenizer `bytes`."""

from __future__ import annotations

from tokenwire.core.host import Host
from tokenwire.core.testing.tokenizer_kit import run_tokenizer_kit
from tokenwire.core.token_ids import TokenIds
from tokenwire.plugins.tokenizers import bytes as plugin


def made():
    return Host({"bytes": plugin}, entry_points=False).build("tokenizer", "bytes")


def test_conforms():
    run_tokenizer_kit(made())


def test_ids_are_bytes_and_three_specials():
    tokenizer = made()
    assert tokenizer.encode("aé<eos>") == TokenIds([97, 0xC3, 0xA9, 257])
    assert [(token.id, token.text) for token in tokenizer.vocabulary.added] == [
        (256, "<bos>"),
        (257, "<eos>"),
        (258, "<pad>"),
    ]
    assert tokenizer.vocabulary.eos_ids == (257,)


def test_a_lone_surrogate_does_no_harm():
    assert made().encode("a\ud800b") == TokenIds(list(b"a?b"))
