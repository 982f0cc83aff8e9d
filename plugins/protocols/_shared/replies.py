"""Reads replies on the side that asked: one body at its end, or a stream. Knows no protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, final

import msgspec

from tokenwire.core.errors import ReplyError
from tokenwire.core.events import Event
from tokenwire.core.ports.codec import ReplyReader
from tokenwire.core.wire import SseReader

__all__ = ("BodyReader", "StreamReader")

FAULTS: Final = (msgspec.MsgspecError, ValueError, LookupError, RecursionError)
"""No JSON, no UTF-8, a word or a number that the protocol does not have, nested too deep."""


@contextmanager
def _of(protocol: str) -> Iterator[None]:
    try:
        yield
    except FAULTS as error:
        raise ReplyError(f"no reply of {protocol}: {error}") from error


@final
class BodyReader(ReplyReader):
    """Reads a unary reply or an error, at its end: `read` says what all its bytes mean."""

    __slots__ = ("_data", "_protocol", "_read")

    def __init__(self, protocol: str, read: Callable[[bytes], list[Event]]) -> None:
        self._protocol = protocol
        self._read = read
        self._data: list[bytes] = []

    def push(self, data: bytes) -> list[Event]:
        self._data.append(data)
        return []

    def flush(self) -> list[Event]:
        with _of(self._protocol):
            return self._read(b"".join(self._data))


@final
class StreamReader(ReplyReader):
    """Reads a stream from any cutting of its bytes: `read` says what each message's data means."""

    __slots__ = ("_lines", "_protocol", "_read")

    def __init__(self, protocol: str, read: Callable[[str], list[Event]]) -> None:
        self._protocol = protocol
        self._read = read
        self._lines = SseReader()

    def push(self, data: bytes) -> list[Event]:
        events: list[Event] = []
        with _of(self._protocol):
            for message in self._lines.push(data):
                if message.comment is None:
                    events += self._read(message.data)
        return events

    def flush(self) -> list[Event]:
        return []
