"""Width and height of a picture, from its header: PNG, JPEG, GIF, WebP. Decodes no pixel. Pure.

Sources: PNG (W3C, 11.2.2), GIF89a (18), JPEG (ITU T.81, B.1 and B.2), WebP (RFC 9649).
"""

from __future__ import annotations

from collections.abc import Callable
from struct import error, unpack_from
from typing import Final

__all__ = ("FORMATS", "image_size")

FORMATS: Final = "PNG, JPEG, GIF or WebP"

# Start of frame, of any coding: 0xC0 to 0xCF but for tables and arithmetic conditioning.
FRAMES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
LONE: Final = frozenset((0x01, *range(0xD0, 0xD8)))
"""Markers without a length."""


def image_size(data: bytes) -> tuple[int, int] | None:
    """(width, height), each above 0; None where it is no such picture, or its header is cut."""
    for begin, read in READERS:
        if data.startswith(begin):
            try:
                width, height = read(data)
            except error:
                return None
            return (width, height) if width > 0 and height > 0 else None
    return None


def _png(data: bytes) -> tuple[int, int]:
    if data[12:16] != b"IHDR":
        return 0, 0
    width, height = unpack_from(">II", data, 16)
    return width, height


def _gif(data: bytes) -> tuple[int, int]:
    width, height = unpack_from("<HH", data, 6)
    return width, height


def _jpeg(data: bytes) -> tuple[int, int]:
    at = 2
    while at + 1 < len(data):
        if data[at] != 0xFF:
            return 0, 0
        marker = data[at + 1]
        if marker == 0xFF:  # Why: a marker may have fill bytes before it.
            at += 1
        elif marker in LONE:
            at += 2
        elif marker in FRAMES:
            height, width = unpack_from(">HH", data, at + 5)
            return width, height
        else:
            at += 2 + max(unpack_from(">H", data, at + 2)[0], 2)
    return 0, 0


def _webp(data: bytes) -> tuple[int, int]:
    kind = data[12:16] if data[8:12] == b"WEBP" else b""
    if kind == b"VP8X":
        width, more, height, rest = unpack_from("<HBHB", data, 24)
        return (width | more << 16) + 1, (height | rest << 16) + 1
    if kind == b"VP8L" and data[20:21] == b"\x2f":
        (bits,) = unpack_from("<I", data, 21)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 " and data[23:26] == b"\x9d\x01\x2a":
        width, height = unpack_from("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    return 0, 0


READERS: Final[tuple[tuple[bytes, Callable[[bytes], tuple[int, int]]], ...]] = (
    (b"\x89PNG\r\n\x1a\n", _png),
    (b"\xff\xd8", _jpeg),
    (b"GIF87a", _gif),
    (b"GIF89a", _gif),
    (b"RIFF", _webp),
)
