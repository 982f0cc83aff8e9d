"""Real tokenizers go through a GGUF and come back: the same ids, bytes and fingerprints."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as Library

from tests import real_tokenizers
from tests.core.gguf_vocabularies import PRE, write_vocabulary
from tokenwire.core.checkpoint import Checkpoint
from tokenwire.core.gguf_files import write_files
from tokenwire.plugins.tokenizers.hf.load import load
from tokenwire.plugins.tokenizers.hf.settings import HfSettings

CORPUS = (
    "",
    " ",
    "a",
    "Hello, world! It's 3.14159 or 1234567890, isn't it? DON'T WE'LL i'Ve",
    "   leading, trailing   \t\tand\r\n\r\n\n mixed \u00a0\u2003\u3000\u200bspace  \n",
    "def f(x):\n    return {'a': [x ** 2, 0x1F]}  # <b>&amp;</b>\n\n\n\treturn\n\t\t\treturn",
    '{"city": "Köln", "ok": true, "n": -1e-9, "s": "\\u00e9\\n"}',
    "日本語のテキスト。中文文本,한국어 텍스트! Ελληνικά Русский עברית العربية हिन्दी ไทย",
    "e\u0301 \u00e9 A\u030a \u212b \ufb01 ½ ² Ⅷ ①𝔘𝕟𝕚 \u1e9b\u0323 \u017f İ ß",
    "👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽 🇫🇷 ☃️ \U0001f9ff",
    "\x00\x01\x7f\x80\x9f\ufeff\ufffd\uffff\U0010fffd \ud7ff\ue000",
    "a" * 80 + " " * 70 + "!" * 90 + "\n" * 40 + "-=" * 40 + "\t" * 35 + "x" + "▁" * 40,
    "https://example.org/a/b?c=d&e=%20#f camelCaseWords SHOUTING snake_case iPhone XMLHttp",
    "<s>[INST] hi [/INST] </s> <unk> <0x0A> [PAD3] <|im_start|>user\nhi<|im_end|>",
)
PIECES = [
    *("the", "The", " a", "'s", "'LL", "12", "7", " ", "  ", "\n", "\t", "\r\n", ".", "!?", "/"),
    *("é", "e\u0301", "日本", "の", "한", "я", "Ж", "ǅ", "ʰ", "½", "👍🏽", "\u200d", "\x00"),
]
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=6), max_size=12).map("".join)
QUICK = ("smollm2", "llama2")
NAMES = [pytest.param(n, marks=[] if n in QUICK else pytest.mark.long) for n in PRE]


def folder_of(name: str) -> Path:
    return real_tokenizers.smollm2() if name == "smollm2" else real_tokenizers.published(name)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A tokenizer's name -> the folder of what comes back of it."""

    @cache
    def make(name: str) -> Path:
        folder = tmp_path_factory.mktemp(name)
        write_files(write_vocabulary(folder / "a.gguf", folder_of(name), name), folder)
        return folder

    return make


@pytest.fixture(scope="module")
def both(made: Callable[[str], Path]) -> Callable[[str], tuple[Library, Library]]:
    """A tokenizer's name -> the published one, and the one that comes back."""

    @cache
    def read(name: str) -> tuple[Library, Library]:
        theirs, ours = folder_of(name), made(name)
        return tuple(Library.from_file(str(it / "tokenizer.json")) for it in (theirs, ours))

    return read


def assert_same(theirs: Library, ours: Library, texts: list[str]) -> None:
    wanted = theirs.encode_batch_fast(texts, add_special_tokens=False)
    found = ours.encode_batch_fast(texts, add_special_tokens=False)
    for text, want, got in zip(texts, wanted, found, strict=True):
        assert got.ids == want.ids, text
        assert ours.decode(got.ids, skip_special_tokens=False) == theirs.decode(
            want.ids, skip_special_tokens=False
        )


@pytest.mark.parametrize("name", NAMES)
def test_ids_are_those_of_the_published_tokenizer(name, both) -> None:
    theirs, ours = both(name)
    added = [token.content for token in theirs.get_added_tokens_decoder().values()]
    spelled = ["".join(f"{text} a{text}\n{text}1" for text in added[:400]), " ".join(added)]
    assert_same(theirs, ours, [*CORPUS, *spelled, "".join(text[:-1] + "." for text in added)])


@pytest.mark.parametrize("name", NAMES)
def test_ids_of_any_text_are_the_same(name, both) -> None:
    theirs, ours = both(name)

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(TEXTS)
    def check(text: str) -> None:
        assert_same(theirs, ours, [text])

    check()


@pytest.mark.parametrize("name", NAMES)
def test_fingerprints_are_the_same_and_texts_begin_as_they_should(name, made) -> None:
    folder = folder_of(name)
    ours = load(HfSettings(fast="off"), Checkpoint(made(name))).vocabulary
    theirs = load(HfSettings(fast="off"), Checkpoint(folder)).vocabulary
    assert ours.fingerprints == theirs.fingerprints
    assert (ours.size, ours.added, ours.bos) == (theirs.size, theirs.added, theirs.bos)
    assert ours.strips_leading_space == theirs.strips_leading_space
    begin = theirs.begin_ids
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    if settings.get("add_bos_token") and not begin:  # It is Python's part there.
        begin = tuple(entry.id for entry in theirs.added if entry.text == theirs.bos)
    assert ours.begin_ids == begin
    assert Checkpoint(made(name)).config()["vocab_size"] == theirs.size + 5
