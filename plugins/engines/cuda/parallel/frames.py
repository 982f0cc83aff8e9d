"""What a front and the ranks of a group say to each other: tagged Structs, each with its length.

A rank opens the connection and says `Enter`; then both sides send whenever they have something.
A frame is u32 little endian, the length of what follows, and msgpack. Knows no socket.
"""

from __future__ import annotations

from typing import Final, TypeAlias, final

import msgspec
from msgspec import Struct

from tokenwire.core.token_codec import decoder, encode_msgpack
from tokenwire.core.tokens import (
    Control,
    EngineCard,
    EngineStatus,
    Figure,
    KvEvent,
    TokenDelta,
    TokenJob,
)

__all__ = (
    "About",
    "Beat",
    "Controls",
    "Deltas",
    "Enter",
    "Events",
    "Failed",
    "Figures",
    "FrameError",
    "FromFront",
    "FromRank",
    "Hello",
    "Instead",
    "Jobs",
    "Listen",
    "Progress",
    "Splitter",
    "Stop",
    "Wake",
    "encode",
    "read_front",
    "read_rank",
)

HEAD: Final = 4
MOST: Final = 1 << 30
"""Bytes of a frame: more than the longest prompt's log probabilities take."""
MOST_OF_STRANGERS: Final = 4096
"""Bytes of `Enter`: whoever has not said the token yet can fill no memory."""

About: TypeAlias = dict[str, str | int | float]


class FrameError(ValueError):
    """What came is no frame, or is larger than any may be."""


# --- from the front --------------------------------------------------------------------------


class Jobs(Struct, frozen=True, tag="jobs"):
    """To the leader that shall run them. `wave`: the group's count of these frames."""

    wave: int
    jobs: tuple[TokenJob, ...]


class Wake(Struct, frozen=True, tag="wake"):
    """To the group's other leaders: there is work again, at one of them."""

    wave: int


class Controls(Struct, frozen=True, tag="controls"):
    frames: tuple[Control, ...]


class Listen(Struct, frozen=True, tag="listen"):
    """Send KV events from now on, a snapshot first."""


class Stop(Struct, frozen=True, tag="stop"):
    """Abort (drain) what is left, send it, and end."""


# --- from a rank -----------------------------------------------------------------------------


class Enter(Struct, frozen=True, tag="enter"):
    """The first frame of a connection."""

    token: str
    """The front's secret."""
    rank: int
    pid: int
    host: str


class Beat(Struct, frozen=True, tag="beat"):
    """Its process runs; nothing else is to be said."""


class Progress(Struct, frozen=True, tag="progress"):
    """It loads: bytes `done` of `total`; 0 of 0: not yet known."""

    text: str = ""
    done: int = 0
    total: int = 0


class Figures(Struct, frozen=True, tag="figures"):
    """A leader's status now. `figures` empty: those before still hold, nearly."""

    ready: bool = True
    reason: str = ""
    running: int = 0
    waiting: int = 0
    kv_blocks_total: int = 0
    kv_blocks_free: int = 0
    figures: tuple[Figure, ...] = ()

    @classmethod
    def of(cls, status: EngineStatus, *, is_whole: bool) -> Figures:
        return cls(
            status.ready,
            status.reason,
            status.running,
            status.waiting,
            status.kv_blocks_total,
            status.kv_blocks_free,
            status.figures if is_whole else (),
        )


class Hello(Struct, frozen=True, tag="hello"):
    """It is ready. A follower has no part and no card."""

    part: int | None = None
    card: EngineCard | None = None
    slots: int = 0
    """Sequences that run together."""
    about: About = {}
    figures: Figures = Figures()


class Deltas(Struct, frozen=True, tag="deltas"):
    batch: tuple[TokenDelta, ...]


class Events(Struct, frozen=True, tag="events"):
    events: tuple[KvEvent, ...]


class Failed(Struct, frozen=True, tag="failed"):
    """It cannot go on, and why: a sentence for people. It ends."""

    text: str


class Instead(Struct, frozen=True, tag="instead"):
    """Its group shall start in another layout: so many groups of that, on the same devices. It
    ends."""

    layout: str
    groups: int
    reason: str


FromFront: TypeAlias = Jobs | Wake | Controls | Listen | Stop
FromRank: TypeAlias = Enter | Beat | Progress | Hello | Deltas | Figures | Events | Failed | Instead

_FROM_FRONT: Final = decoder(FromFront)
_FROM_RANK: Final = decoder(FromRank)


def encode(frame: FromFront | FromRank) -> bytes:
    """Raises FrameError for one that is too large."""
    data = encode_msgpack(frame)
    if len(data) > MOST:
        raise FrameError(f"a frame of {len(data)} bytes is larger than any may be ({MOST})")
    return len(data).to_bytes(HEAD, "little") + data


def read_front(data: bytes) -> FromFront:
    """What a front sent. Raises FrameError."""
    try:
        frame: FromFront = _FROM_FRONT.decode(data)
    except msgspec.DecodeError as error:
        raise FrameError(f"a frame of the front: {error}") from error
    return frame


def read_rank(data: bytes) -> FromRank:
    """What a rank sent. Raises FrameError."""
    try:
        frame: FromRank = _FROM_RANK.decode(data)
    except msgspec.DecodeError as error:
        raise FrameError(f"a frame of a rank: {error}") from error
    return frame


@final
class Splitter:
    """A stream's bytes, as they come, cut into frames."""

    def __init__(self, most: int = MOST_OF_STRANGERS) -> None:
        """`most`: bytes of a frame; `trust` lifts it."""
        self._most = most
        self._held = bytearray()

    def trust(self) -> None:
        self._most = MOST

    def feed(self, data: bytes) -> None:
        self._held += data

    def next(self) -> bytes | None:
        """The next whole frame, without its length. Raises FrameError where it is too large."""
        held = self._held
        if len(held) < HEAD:
            return None
        size = int.from_bytes(held[:HEAD], "little")
        if size > self._most:
            raise FrameError(f"a frame of {size} bytes, wanted {self._most} at most")
        if len(held) < HEAD + size:
            return None
        frame = bytes(held[HEAD : HEAD + size])
        del held[: HEAD + size]
        return frame
