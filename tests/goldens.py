"""Replies kept as files, written and read back. Knows no protocol.

A codec that changes on purpose writes its files anew with UPDATE_GOLDEN=1, and the diff is
reviewed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from tokenwire.core.call import Call
from tokenwire.core.events import Event, PartDelta, PartEnd, PartStart, Started
from tokenwire.core.fold import fold
from tokenwire.core.ports.codec import Codec, CodecClient
from tokenwire.core.testing.codec_compare import normal
from tokenwire.core.testing.codec_probe import forgive, reading
from tokenwire.core.wire import Stamp

__all__ = ("START", "both_ways", "check", "part", "written")

STAMP: Final = Stamp("req_1", 1_700_000_000.0, bytes(range(16)))
START: Final = Started(9, 4, "0123456789abcdef" * 4)


def check(path: Path, data: bytes) -> None:
    """`data` is what the file holds."""
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_bytes(data)
    assert path.read_bytes() == data, f"{path.name} differs; UPDATE_GOLDEN=1 writes it anew"


def part(kind: Any, *pieces: str, choice: int = 0, **start: Any) -> tuple[Event, ...]:
    deltas = (PartDelta(choice, piece) for piece in pieces)
    return (PartStart(choice, kind, **start), *deltas, PartEnd(choice))


def written(codec: Codec, asked: Call, events: Iterable[Event]) -> bytes:
    """The whole reply, after START."""
    reply = codec.reply(asked, STAMP)
    return b"".join(reply.push(event) for event in (START, *events))


def both_ways(
    codec: Codec, client: CodecClient, path: Path, asked: Call, events: tuple[Event, ...]
) -> None:
    """The file is the reply that is written, and read back it is the same answer."""
    data = written(codec, asked, events)
    check(path, data)
    choices = max(1, len(asked.prompts)) * asked.output.n
    got = fold(reading(client)(asked, [data[:100], data[100:]]), choices)
    wanted = forgive(fold((START, *events), choices), got, codec.losses)
    if wanted.failed is None:
        assert normal(wanted, codec.losses) == normal(got, codec.losses)
    else:
        assert got.failed == wanted.failed
