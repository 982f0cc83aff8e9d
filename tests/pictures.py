"""Pictures of any size whose headers are real and whose pixels are none."""

from __future__ import annotations

import zlib
from struct import pack

__all__ = ("PICTURES", "gif", "jpeg", "png", "webp", "webp_lossless", "webp_lossy")


def png(width: int, height: int, salt: bytes = b"") -> bytes:
    """`salt` makes another picture of the same size."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return pack(">I", len(data)) + kind + data + pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    body = chunk(b"IDAT", zlib.compress(salt)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + head + body


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + pack("<HHBBB", width, height, 0, 0, 0) + b";"


def jpeg(width: int, height: int) -> bytes:
    comment = b"\xff\xe1" + pack(">H", 2 + 300) + b"\xff\xc0" * 150
    tables = b"\xff\xc4" + pack(">H", 4) + b"\0\0"
    frame = b"\xff\xff\xc2" + pack(">HBHHB", 11, 8, height, width, 1) + b"\x01\x11\x00"
    return b"\xff\xd8" + comment + tables + frame + b"\xff\xd9"


def webp(width: int, height: int) -> bytes:
    size = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return b"RIFF\x1e\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0" + size


def webp_lossy(width: int, height: int) -> bytes:
    return b"RIFF\x1e\0\0\0WEBPVP8 \x0a\0\0\0\0\0\0\x9d\x01\x2a" + pack("<HH", width, height)


def webp_lossless(width: int, height: int) -> bytes:
    bits = pack("<I", (width - 1) | (height - 1) << 14)
    return b"RIFF\x1e\0\0\0WEBPVP8L\x0a\0\0\0\x2f" + bits


PICTURES = {
    "png": png,
    "gif": gif,
    "jpeg": jpeg,
    "webp": webp,
    "webp_lossy": webp_lossy,
    "webp_lossless": webp_lossless,
}
