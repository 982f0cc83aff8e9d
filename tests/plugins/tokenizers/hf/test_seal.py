"""Shields over small tokenizers that have what the published ones lack."""

from __future__ import annotations

import json

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers

from tokenwire.core.checkpoint import Checkpoint
from tokenwire.core.detokenizer import PieceTable
from tokenwire.core.errors import RequestError
from tokenwire.core.token_ids import TokenIds
from tokenwire.plugins.tokenizers.hf.load import load
from tokenwire.plugins.tokenizers.hf.settings import HfSettings

POINT = "\U000f0000"
END = "<end>"


def saved(folder, library):
    """What `load` makes of it, with the library's own."""
    library.save(str(folder / "tokenizer.json"))
    return load(HfSettings(fast="off"), Checkpoint(folder))


def letters(*more):
    """A BPE without merges: each printable character is an id."""
    vocabulary = {chr(code): code - 32 for code in range(32, 127)}
    for token in more:
        vocabulary[token] = len(vocabulary)
    return Tokenizer(models.BPE(vocabulary, []))


def spelled(tokenizer, ids):
    return [tokenizer._library.id_to_token(id) for id in ids]


def test_a_flag_that_eats_white_space_eats_it_beside_shields_too(tmp_path):
    library = letters()
    library.decoder = decoders.Fuse()
    library.add_special_tokens([AddedToken(END, lstrip=True, rstrip=True)])
    tokenizer = saved(tmp_path, library)
    plain = tokenizer.encode(f"a  {END}  b")
    assert spelled(tokenizer, plain) == ["a", END, "b"]
    assert tokenizer.encode(f"a  {END}  b", {POINT: END}) == plain
    mixed = tokenizer.encode(f"a {END} {POINT} b", {POINT: END})
    assert "".join(spelled(tokenizer, mixed)) == f"a{END}{END} b"
    assert list(mixed).count(tokenizer.vocabulary.added[0].id) == 1


def test_a_model_whose_own_pieces_hold_a_special_token_does_not_spell_it(tmp_path):
    scores = [("<unk>", 0.0), *((chr(code), -9.0) for code in range(33, 127)), ("▁", -9.0)]
    library = Tokenizer(models.Unigram([*scores, (END, 0.0)], 0, False))
    library.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
    library.decoder = decoders.Metaspace(prepend_scheme="never")
    library.add_special_tokens([AddedToken(END, normalized=False)])
    tokenizer = saved(tmp_path, library)
    special = library.token_to_id(END)
    assert special in tokenizer.encode(f"a{END}")
    ids = tokenizer.encode(f"a{POINT}b {END}", {POINT: END})
    assert list(ids).count(special) == 1
    assert list(ids).index(special) == len(ids) - 1
    assert PieceTable(tokenizer).decode(ids) == f"a{END}b {END}"


def test_a_special_token_that_two_parts_still_spell_goes_letter_by_letter(tmp_path):
    scores = [("<unk>", 0.0), *((letter, -9.0) for letter in "<end>a"), ("end>", -1.0), (END, 0.0)]
    library = Tokenizer(models.Unigram(scores, 0, False))
    library.decoder = decoders.Fuse()
    library.add_special_tokens([END, "end>"])
    tokenizer = saved(tmp_path, library)
    ids = tokenizer.encode(f"a{POINT}", {POINT: END})
    assert spelled(tokenizer, ids) == ["a", *END]


def test_a_normaliser_cannot_turn_client_text_into_a_special_token(tmp_path):
    library = letters()
    library.normalizer = normalizers.Lowercase()
    library.decoder = decoders.Fuse()
    library.add_special_tokens([AddedToken(END, normalized=True)])
    assert library.encode("a<END>").tokens == ["a", END]
    tokenizer = saved(tmp_path, library)
    assert spelled(tokenizer, tokenizer.encode("a<END>")) == ["a", *END]
    assert spelled(tokenizer, tokenizer.encode(f"a{END}")) == ["a", END]
    assert tokenizer.encode_many([("a<END>", {})]) == [tokenizer.encode("a<END>")]


def test_a_code_point_that_a_normaliser_hides_is_encoded_by_itself(tmp_path):
    library = letters("▁")
    library.normalizer = normalizers.Prepend("▁")
    library.decoder = decoders.Fuse()
    library.add_special_tokens([AddedToken(END, normalized=True)])
    tokenizer = saved(tmp_path, library)
    ids = tokenizer.encode(f"a{END}b{POINT}", {POINT: END})
    assert list(ids).count(library.token_to_id(END)) == 1
    assert PieceTable(tokenizer).decode(ids) == f"▁a{END}▁b{END}"


def test_client_text_may_hold_the_code_points_that_seal(tmp_path):
    library = letters(*(chr(0x10FFFD - place) for place in range(3)))
    library.decoder = decoders.Fuse()
    library.add_special_tokens([END, "<x>"])
    tokenizer = saved(tmp_path, library)
    table = PieceTable(tokenizer)
    text = f"{chr(0x10FFFD)}{POINT}{chr(0x10FFFC)}{END}{chr(0x10FFFB)}"
    ids = tokenizer.encode(text, {POINT: "<x>"})
    assert table.decode(ids) == text.replace(POINT, "<x>")
    assert [id for id in ids if id in table.specials] == [library.token_to_id(END)]


def test_a_text_of_nothing_but_spare_code_points_is_refused(tmp_path):
    library = letters()
    library.add_special_tokens([END])
    spare = "".join(map(chr, [*range(0xF0000, 0x10FFFE), *range(0x40000, 0xE0000)]))
    with pytest.raises(RequestError, match="private and unassigned"):
        saved(tmp_path, library).encode(spare, {"\ue000": END})


def test_a_marker_that_is_not_special_is_shielded_all_the_same(tmp_path):
    library = letters("<think>")
    library.decoder = decoders.Fuse()
    library.add_tokens([AddedToken("<think>", normalized=False)])
    tokenizer = saved(tmp_path, library)
    marker = library.token_to_id("<think>")
    assert list(tokenizer.encode("<think>a<think>")).count(marker) == 2
    assert list(tokenizer.encode(f"<think>a{POINT}", {POINT: "<think>"})).count(marker) == 1


def test_the_longest_spelling_wins_beside_shields_as_without(tmp_path):
    library = letters()
    library.decoder = decoders.Fuse()
    library.add_special_tokens(["<a>", "<a><a>", "<a>b"])
    tokenizer = saved(tmp_path, library)
    for text in ("<a><a>b", "<a><a><a>", "x<a>bb", "<a"):
        assert tokenizer.encode(text, {POINT: "<a>"}) == tokenizer.encode(text)


def test_no_shield_and_no_text_is_no_id(tmp_path):
    tokenizer = saved(tmp_path, letters())
    assert tokenizer.encode("", {POINT: END}) == TokenIds()
    assert tokenizer.encode_many([]) == []


def test_truncation_and_padding_of_the_file_are_off(tmp_path):
    library = letters()
    library.enable_truncation(2)
    library.enable_padding(length=5)
    tokenizer = saved(tmp_path, library)
    assert json.loads((tmp_path / "tokenizer.json").read_text())["truncation"] is not None
    assert spelled(tokenizer, tokenizer.encode("abc")) == ["a", "b", "c"]
