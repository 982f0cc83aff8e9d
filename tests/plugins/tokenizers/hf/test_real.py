"""The tokenizer `hf` over published tokenizers: SmolLM2 and Qwen3, and under `long` five more."""

from __future__ import annotations

from random import Random

import pytest
from tokenizers import Tokenizer as Library

from tests.plugins.tokenizers.hf.real import MARKERS, NAMES, folder, lacks, loaded, normal
from tokenwire.core.detokenizer import PieceTable
from tokenwire.core.testing.tokenizer_kit import run_tokenizer_kit

TEXT = (
    "The quick brown fox, 12 dogs; naïve 🌊潮 👩‍👩‍👧‍👦 हिन्दी 한국어.\n\n\t"
    "def f(x):\n    return {'a': 1}\n"
    "<|im_start|>user\nhi<|im_end|>\n<start_of_turn>model\n<think>x</think>"
    " <\uff5cUser\uff5c>x<b>y</b></s>"
)


@pytest.fixture(scope="module", params=NAMES)
def real(request):
    """(name, our tokenizer, the library's)."""
    name = request.param
    return name, loaded(name), Library.from_file(str(folder(name) / "tokenizer.json"))


def test_conforms(real):
    name, tokenizer, _ = real
    run_tokenizer_kit(
        tokenizer, markers=MARKERS.get(name, ()), normal=normal(name), lacks=lacks(name)
    )


def test_ids_are_the_library_s(real):
    _, tokenizer, library = real
    random = Random(7)
    words = [TEXT[k : k + 5] for k in range(0, len(TEXT), 3)]
    words += [token.text for token in tokenizer.vocabulary.added[:300]]
    for _ in range(200):
        text = "".join(random.choices(words, k=12))
        wanted = library.encode(text, add_special_tokens=False).ids
        assert list(tokenizer.encode(text)) == wanted
        assert list(tokenizer.encode(text, {"\U000f0000": "<|im_start|>"})) == wanted


def test_decoding_any_ids_is_the_library_s(real):
    name, tokenizer, library = real
    table = PieceTable(tokenizer)
    random = Random(3)
    ordinary = [
        id
        for id in range(tokenizer.vocabulary.size)
        if id not in table.specials and not _is_fallback(library.id_to_token(id))
    ]
    end = list(tokenizer.encode("ok"))
    for _ in range(200):
        ids = random.choices(ordinary, k=40) + end
        assert table.decode(ids) == library.decode(ids, skip_special_tokens=False), name
    ids = list(tokenizer.encode(TEXT))
    assert table.decode(ids) == library.decode(ids, skip_special_tokens=False)


def _is_fallback(token):
    """Why left out: of byte tokens the library replaces a whole run, and each byte by itself, when
    any of it is no UTF-8, which needs the end of the run; a stream cannot wait for that."""
    return token is None or (len(token) == 6 and token.startswith("<0x"))


def test_bytes_of_every_id_are_the_library_s(real):
    """One by one, where an id decodes by itself."""
    _, tokenizer, library = real
    for id in range(0, tokenizer.vocabulary.size, 11):
        token = library.id_to_token(id)
        if token is None:
            with pytest.raises(KeyError):
                tokenizer.token_bytes(id)
            continue
        text = tokenizer.token_bytes(id).decode(errors="replace")
        decoded = library.decode([id], skip_special_tokens=False)
        if tokenizer.vocabulary.strips_leading_space:
            text = text.removeprefix(" ")
        assert text == decoded


def test_no_special_token_comes_out_of_shielded_text(real):
    _, tokenizer, _ = real
    table = PieceTable(tokenizer)
    random = Random(5)
    special = [token.text for token in tokenizer.vocabulary.added if token.special]
    shields = {chr(0x10FFFD - place): text for place, text in enumerate(special[:60])}
    for _ in range(100):
        parts = random.choices([*shields, "hello", " ", "\n", "1", "<", "<b>"], k=15)
        text = "".join(parts)
        ids = tokenizer.encode(text, shields)
        assert not table.specials.keys() & set(ids)
        assert table.decode(ids) == text.translate({ord(p): v for p, v in shields.items()})


@pytest.mark.parametrize("name", NAMES)
def test_fastokens_gives_the_same_ids(name):
    pytest.importorskip("fastokens")
    fast, plain = loaded(name, "auto"), loaded(name)
    assert fast.is_fast
    assert not plain.is_fast
    random = Random(11)
    for _ in range(200):
        text = "".join(random.choices(TEXT, k=60))
        assert fast.encode(text) == plain.encode(text)
    assert fast.encode_many([(TEXT, {}), ("", {})]) == plain.encode_many([(TEXT, {}), ("", {})])


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_long_runs_are_encoded_whatever_fastokens_makes_of_them(name):
    pytest.importorskip("fastokens")
    fast, plain = loaded(name, "auto"), loaded(name)
    text = " " * 1_000_000
    assert fast.encode(text) == plain.encode(text)


def test_smollm2_knows_its_ends_and_names():
    vocabulary = loaded("smollm2").vocabulary
    assert vocabulary.size == 49152
    assert vocabulary.eos_ids == (2,)
    assert (vocabulary.bos, vocabulary.eos) == ("<|im_start|>", "<|im_end|>")
    assert set(vocabulary.fingerprints) == {"vocabulary", "added_tokens", "merges"}


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "bos", "eos"),
    [
        ("llama3_1", "<|begin_of_text|>", "<|eot_id|>"),
        ("deepseek_v3", "<\uff5cbegin▁of▁sentence\uff5c>", "<\uff5cend▁of▁sentence\uff5c>"),
        ("gemma3", "<bos>", "<end_of_turn>"),
    ],
)
def test_names_of_published_tokenizers(name, bos, eos):
    vocabulary = loaded(name).vocabulary
    assert (vocabulary.bos, vocabulary.eos) == (bos, eos)
    ends = {token.id for token in vocabulary.added if token.text == eos}
    assert set(vocabulary.eos_ids) == ends
