"""Runs a parser over pieces and says what it read, whatever the cutting and saving on the way."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import pytest

from tests.shared_files import shared
from tokenwire.core.events import Order, PartDelta, Started
from tokenwire.core.fold import Part, fold
from tokenwire.core.ports.dialect import ParserSetup
from tokenwire.core.prompt import Piece
from tokenwire.plugins.dialects.hermes.maker import hermes_maker

__all__ = ("call", "read", "reasoning", "template_source", "text")

SAVED = 1024


def text(text: str) -> Part:
    return Part("text", text)


def reasoning(text: str) -> Part:
    return Part("reasoning", text)


def call(name: str, arguments: str, *, complete: bool = True) -> Part:
    return Part("tool_call", arguments, name=name, complete=complete)


def run(maker, setup, pieces) -> list[Part]:
    """The parts; the parser is saved and restored after every piece."""
    parser = maker.parser(setup)
    events = []
    for piece in pieces:
        events += parser.push(piece)
        state = msgspec.msgpack.encode(parser.save())
        fresh = maker.parser(setup)
        fresh.restore(msgspec.msgpack.decode(state))
        assert msgspec.msgpack.encode(fresh.save()) == state
        assert fresh.phase == parser.phase
        parser = fresh
    events += parser.flush()
    assert list(parser.flush()) == []
    order = Order()
    for event in (Started(0), *events):
        order.step(event)
    assert all(event.text for event in events if isinstance(event, PartDelta))
    return list(fold([Started(0), *events]).choices[0].parts)


def read(*pieces, maker=None, special=(), **setup) -> list[Part]:
    """What the pieces are read as; the same for the whole, for single letters, cut at random.

    `special`: which of the pieces are special tokens; then they are read as they are cut.
    """
    maker = maker or hermes_maker()
    setup = ParserSetup(**setup)
    parts = run(maker, setup, [Piece(piece, piece in special) for piece in pieces])
    if special:
        return parts
    whole = "".join(pieces)
    ways = [[whole], list(whole)] if len(whole) < 4000 else [[whole]]
    chance = random.Random(len(whole))
    for _ in range(20):
        cuts = sorted(chance.choices(range(len(whole) + 1), k=4))
        ways.append([whole[a:b] for a, b in zip((0, *cuts), (*cuts, len(whole)), strict=True)])
    for way in ways:
        assert run(maker, setup, map(Piece, way)) == parts, way
    return parts


def template_source(name: str) -> str:
    path: Path = shared("templates") / f"{name}.jinja"
    if not path.is_file():
        pytest.skip(f"the published chat template {name} is not at {path}")
    return path.read_text(encoding="utf-8")
