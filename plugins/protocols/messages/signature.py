"""Signatures of thinking blocks: an HMAC over render fingerprint, text and place. Knows no wire.

A signature is url-safe base64 of version (1 byte), mark (16: sha256 of the render fingerprint,
cut), and HMAC-SHA256 (32) over mark, digest of the text (32) and place (u32le). The mark stands in
the open because whoever reads a history knows text and place, but not which render made them. The
place is the block's index in its own message, so that blocks can be neither moved nor swapped.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256
from typing import Final

from tokenwire.core.signing import Keyring, TextDigest, unspelled

__all__ = ("is_ours", "sign")

PURPOSE: Final = "thinking"
VERSION: Final = b"\x01"
MARK: Final = 16
LENGTH: Final = 1 + MARK + 32


def sign(keys: Keyring, fingerprint: str, digest: bytes, place: int) -> str:
    """`digest` is TextDigest's, of the whole block."""
    mark = sha256(fingerprint.encode()).digest()[:MARK]
    mac = keys.sign(PURPOSE, mark + digest + place.to_bytes(4, "little"))
    return urlsafe_b64encode(VERSION + mark + urlsafe_b64decode(mac)).decode()


def is_ours(keys: Keyring, text: str, place: int, signature: str) -> bool:
    """Whether one of our keys signed this text at this place. Never raises, whatever the text."""
    try:
        data = unspelled(signature)
    except ValueError:
        return False
    if len(data) != LENGTH or data[:1] != VERSION:
        return False
    digest = TextDigest()
    digest.push(text)
    mark, mac = data[1 : 1 + MARK], data[1 + MARK :]
    message = mark + digest.digest() + place.to_bytes(4, "little")
    return keys.verify(PURPOSE, message, urlsafe_b64encode(mac).decode())
