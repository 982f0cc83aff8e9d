"""Feeds a call reader by itself, cut anywhere and saved on the way, and says what it read."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import msgspec

from tokenwire.core.events import PartDelta, PartStart
from tokenwire.plugins.dialects._shared.call_reader import CallReader, Outcome
from tokenwire.plugins.dialects._shared.emitter import Emitter

__all__ = ("read_call",)

Read = tuple[list[tuple[str, str, bool]], str]


def read_call(make: Callable[[], CallReader], text: str, *, cuts: int = 12) -> Read:
    """((name, arguments, complete) of each call, the text that is in no call)."""
    read = _run(make, [text])
    assert _run(make, list(text)) == read
    chance = random.Random(len(text))
    for _ in range(cuts):
        ends = sorted(chance.choices(range(len(text) + 1), k=4))
        pieces = [text[a:b] for a, b in zip((0, *ends), (*ends, len(text)), strict=True)]
        assert _run(make, pieces) == read, pieces
    return read


def _run(make: Callable[[], CallReader], pieces: Sequence[str]) -> Read:
    whole = "".join(pieces)
    reader, emit = make(), Emitter(0)
    waiting, base = "", 0
    for place, piece in enumerate((*pieces, "")):
        is_final = place == len(pieces)
        waiting += piece
        if waiting:
            at, outcome = reader.feed(waiting, 0, base, emit, is_final=is_final)
            waiting, base = waiting[at:], base + at
            reader = _again(make, reader)
            if outcome is not Outcome.MORE:
                break
    else:
        assert not waiting
        reader.stop(base, emit)
    held = "" if reader.is_started else reader.held
    emit.close(is_complete=reader.is_whole)
    return _calls(emit, len(whole)), held + whole[base:]


def _again(make: Callable[[], CallReader], reader: CallReader) -> CallReader:
    """A fresh reader in the same state."""
    state = msgspec.msgpack.encode(reader.save())
    fresh = make()
    fresh.restore(msgspec.msgpack.decode(state))
    assert msgspec.msgpack.encode(fresh.save()) == state
    return fresh


def _calls(emit: Emitter, length: int) -> list[tuple[str, str, bool]]:
    calls: list[tuple[str, str, bool]] = []
    for event in emit.take():
        if isinstance(event, PartStart):
            calls.append((event.name or "", "", False))
            continue
        name, arguments, _ = calls[-1]
        if isinstance(event, PartDelta):
            assert event.text
            assert event.end is None or event.end <= length
            calls[-1] = (name, arguments + event.text, False)
        else:
            calls[-1] = (name, arguments, event.complete)
    return calls
