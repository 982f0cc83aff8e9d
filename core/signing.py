"""Signatures and MACs with rotating keys, and a text digest that can be saved at any character."""

from __future__ import annotations

import hmac
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Sequence
from hashlib import sha256
from typing import final

__all__ = ("Keyring", "TextDigest", "unspelled")

BLOCK = 64


def unspelled(text: str) -> bytes:
    """Of url-safe base64, as `urlsafe_b64encode` writes it and not otherwise, so that no changed
    character passes as the same. Raises ValueError."""
    data = b64decode(text.encode(), b"-_", validate=True)
    if urlsafe_b64encode(data).decode() != text:
        raise ValueError("wanted url-safe base64 in its one spelling")
    return data


@final
class Keyring:
    """The first key signs, all verify. Each use names a `purpose`, so that MACs never mix."""

    __slots__ = ("_keys",)

    def __init__(self, keys: Sequence[bytes]) -> None:
        """Raises ValueError without keys, or for a key under 16 bytes."""
        if not keys or any(len(key) < 16 for key in keys):
            raise ValueError("a keyring needs at least one key, each of 16 bytes or more")
        self._keys = tuple(keys)

    def adopt(self, other: Keyring) -> None:
        """Take another's keys, because the files they came from have changed."""
        self._keys = other._keys

    def sign(self, purpose: str, message: bytes) -> str:
        """url-safe base64 of HMAC-SHA256 (RFC 2104) under the first key."""
        return urlsafe_b64encode(self._mac(self._keys[0], purpose, message)).decode()

    def verify(self, purpose: str, message: bytes, signature: str) -> bool:
        """Whether any key made `signature`. Never raises, whatever the text."""
        try:
            given = unspelled(signature)
        except ValueError:
            return False
        found = False
        for key in self._keys:
            found |= hmac.compare_digest(given, self._mac(key, purpose, message))
        return found

    def derive(self, purpose: str) -> tuple[bytes, ...]:
        """A 64-byte key of each key, in their order, for uses that take keys and not MACs:
        HMAC-SHA512 with the purpose, as HKDF-Expand (RFC 5869) does in its one and only block."""
        message = b"derive\0" + purpose.encode() + b"\x01"
        return tuple(hmac.digest(key, message, "sha512") for key in self._keys)

    def _mac(self, key: bytes, purpose: str, message: bytes) -> bytes:
        return hmac.digest(key, purpose.encode() + b"\0" + message, "sha256")


@final
class TextDigest:
    """A digest of text that is the same for every cutting, and whose state is under 100 bytes.

    hashlib's objects can be neither saved nor inspected; so UTF-8 is chained in blocks of 64 bytes:
    h = sha256(h | block), and at the end sha256(h | rest | u64 length).
    """

    __slots__ = ("_chain", "_length", "_rest")

    def __init__(self) -> None:
        self._chain = b"\0" * 32
        self._rest = b""
        self._length = 0

    def push(self, text: str) -> None:
        data = self._rest + text.encode()
        self._length += len(data) - len(self._rest)
        whole = len(data) - len(data) % BLOCK
        for start in range(0, whole, BLOCK):
            self._chain = sha256(self._chain + data[start : start + BLOCK]).digest()
        self._rest = data[whole:]

    def digest(self) -> bytes:
        return sha256(self._chain + self._rest + self._length.to_bytes(8, "big")).digest()

    def save(self) -> tuple[bytes, bytes, int]:
        return self._chain, self._rest, self._length

    def restore(self, chain: bytes, rest: bytes, length: int) -> None:
        self._chain, self._rest, self._length = chain, rest, length
