"""The tokenizer `script` over a script book in memory."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from msgspec.structs import replace

from tokenwire.core.detokenizer import PieceTable
from tokenwire.core.errors import ConfigError
from tokenwire.core.host import Host, lone_services
from tokenwire.core.scripts import ScriptBook
from tokenwire.core.testing.tokenizer_kit import run_tokenizer_kit
from tokenwire.plugins.cache.memory.store import MemoryStore
from tokenwire.plugins.tokenizers import script as plugin

HOST = Host({"script": plugin}, entry_points=False)


@pytest.fixture
def book():
    return ScriptBook(MemoryStore(max_bytes=1 << 20))


def made(book, **settings):
    services = replace(lone_services(), scripts=book)
    return HOST.build("tokenizer", "script", settings, services)


def play(book, **script):
    script = asyncio.run(book.put("case", msgspec.json.encode(script)))
    return [id for step in script.steps for id in step.ids]


def test_conforms(book):
    play(book, pieces=["Hello", " world"])
    run_tokenizer_kit(made(book))


def test_pieces_are_ids_of_their_own_bytes(book):
    tokenizer = made(book)
    table = PieceTable(tokenizer)
    ids = play(book, pieces=["ok ", {"hex": "f09f"}, {"hex": "8c8a"}, "<end>"], special=["<end>"])
    machine = table.detokenizer()
    got = [machine.push(id) for id in ids]
    assert [piece.text for piece in got] == ["ok ", "", "🌊", "<end>"]
    assert [piece.special for piece in got] == [False, False, False, True]
    assert all(id < tokenizer.vocabulary.size for id in ids)


def test_a_fixed_id_may_mean_something_else_in_the_next_script(book):
    table = PieceTable(made(book))
    ids = play(book, pieces=["<a>"], special={"<a>": 151667})
    assert ids == [151667]
    assert table.decode(ids) == "<a>"
    assert play(book, pieces=["<b>"], special={"<b>": 151667}) == ids
    assert table.decode(ids) == "<b>"


def test_sentencepiece_pieces_have_a_mark_for_the_space(book):
    tokenizer = made(book, sentencepiece=True)
    ids = play(book, pieces=["▁the", "▁cat", "▁sat"])
    assert PieceTable(tokenizer).decode(ids) == "the cat sat"
    assert tokenizer.token_bytes(ids[0]) == b" the"


def test_without_scripts_it_says_what_it_needs():
    with pytest.raises(ConfigError, match="set the model's engine to mock"):
        HOST.build("tokenizer", "script", {}, lone_services())
