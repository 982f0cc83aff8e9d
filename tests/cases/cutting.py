"""The same output cut in other ways: whole, by token, character and byte, at random. Pure.

Only text moves: special pieces, pauses and faults stay where and as they are.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

__all__ = ("ALL_SEEDS", "SEEDS", "Script", "cuttings", "length_of", "prefixes", "text_of")

Script: TypeAlias = Mapping[str, Any]
Cut: TypeAlias = Callable[[bytes], list[bytes]]
EOS = "<eos>"
WORD_START = "▁".encode()
SEEDS = range(3)
ALL_SEEDS = range(20)
MOMENTS = 6
"""How many prefixes of an output are played."""


def cuttings(script: Script, seeds: range = SEEDS) -> Iterator[tuple[str, Script]]:
    """(name, script) for each cutting; "given" is the first."""
    yield "given", script
    yield "tokens", {**script, "pieces": _tokens(script)}
    for name, cut in _cuts(seeds):
        if name == "bytes" and script.get("format") == "sentencepiece":
            continue  # Why: such a vocabulary spells a space with one character, never with bytes.
        yield name, {**script, "pieces": _recut(script, cut)}


def prefixes(script: Script) -> Iterator[tuple[Script, int]]:
    """Beginnings of an output at which its engine fails, and how many bytes are not made then; the
    whole output is the last."""
    pieces = _recut(script, _characters)
    is_text = all(_is_text(piece) for piece in pieces)
    ends = {len(pieces) * k // MOMENTS for k in range(1, MOMENTS)} if is_text else set()
    for end in sorted(ends - {0, len(pieces)}):
        left = sum(len(data) for piece in pieces[end:] for data in _bytes(piece))
        cut = [*pieces[:end], {"engine_error": "lost"}]
        yield {**script, "pieces": cut, "finish": "abort"}, left
    yield {**script, "pieces": pieces}, 0


def length_of(script: Script) -> int:
    """In bytes."""
    return sum(len(data) for piece in script.get("pieces", ()) for data in _bytes(piece))


def text_of(script: Script) -> str:
    """What the pieces spell together."""
    data = b"".join(part for piece in script["pieces"] for part in _bytes(piece))
    return data.decode("utf-8", "replace")


def _tokens(script: Script) -> list[object]:
    """Steps of one id each."""
    return [
        part
        for piece in script["pieces"]
        for part in (piece if isinstance(piece, list) else (piece,))
    ]


def _cuts(seeds: range) -> Iterator[tuple[str, Cut]]:
    yield "whole", lambda data: [data]
    yield "bytes", lambda data: [data[at : at + 1] for at in range(len(data))]
    yield "characters", _characters
    for seed in seeds:
        yield f"random {seed}", _at_random(seed)


def _characters(data: bytes) -> list[bytes]:
    try:
        return [character.encode() for character in data.decode()]
    except UnicodeDecodeError:
        return [data[at : at + 3] for at in range(0, len(data), 3)]


def _at_random(seed: int) -> Cut:
    chance = random.Random(seed)

    def cut(data: bytes) -> list[bytes]:
        pieces = []
        while data:
            size = chance.randint(1, 7)
            if WORD_START in data:
                size = len(data.decode()[:size].encode())
            pieces.append(data[:size])
            data = data[size:]
        return pieces

    return cut


def _recut(script: Script, cut: Cut) -> list[object]:
    whole = {*(script.get("special") or ()), EOS}
    pieces: list[object] = []
    run = b""
    for piece in script["pieces"]:
        if (isinstance(piece, str) and piece in whole) or not _is_text(piece):
            pieces += [_piece(data) for data in cut(run)] if run else []
            pieces.append(piece)
            run = b""
        else:
            run += b"".join(_bytes(piece))
    return pieces + ([_piece(data) for data in cut(run)] if run else [])


def _is_text(piece: object) -> bool:
    return not isinstance(piece, Mapping) or "hex" in piece


def _bytes(piece: object) -> Sequence[bytes]:
    match piece:
        case str():
            return [piece.encode()]
        case list():
            return [data for part in piece for data in _bytes(part)]
        case {"hex": str() as text}:
            return [bytes.fromhex(text)]
        case {"repeat": str() as text, "times": int() as times}:
            return [text.encode()] * times
        case _:
            return []


def _piece(data: bytes) -> object:
    """Text where it is text, so that special spellings can be told from other pieces."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"hex": data.hex()}
