"""Text that clients keep for us but may neither read nor change: sealed with the server's keys.

AES-SIV (RFC 5297) under keys derived from the keyring: authenticated, and deterministic, so that a
pure reply needs no random nonce and writes the same bytes when it is restored or played again. Who
sees two sealed texts sees whether they are equal, and about how long they are; nothing else.
Knows no protocol.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from tokenwire.core.signing import Keyring, unspelled

__all__ = ("REASONING", "bound_to", "seal", "unseal")

REASONING: Final = "reasoning"
"""The purpose of a model's thinking, as UTF-8, whichever protocol carries it. The flow opens it for
calls that name it as a `Need` of kind "sealed"."""
VERSION: Final = b"\x01"


def bound_to(fingerprint: str, tenant: str) -> bytes:
    """Associated data: what is sealed for one render fingerprint (`events.Started.fingerprint`) and
    one tenant opens for no other."""
    name = fingerprint.encode("utf-8", "surrogatepass")
    return len(name).to_bytes(4, "big") + name + tenant.encode("utf-8", "surrogatepass")


def seal(keys: Keyring, purpose: str, data: bytes, aad: bytes) -> str:
    """url-safe base64, about 4/3 of `data` and 24 characters. `purpose` keeps uses apart."""
    sealed = AESSIV(keys.derive(f"seal {purpose}")[0]).encrypt(VERSION + data, [aad])
    return urlsafe_b64encode(VERSION + sealed).decode()


def unseal(keys: Keyring, purpose: str, text: str, aad: bytes) -> bytes | None:
    """What was sealed with any of the keys for this purpose and `aad`; None for anything else.

    Never raises, whatever the text.
    """
    try:
        data = unspelled(text)
    except ValueError:
        return None
    if data[:1] != VERSION or len(data) < 1 + 16 + 1:
        return None
    for key in keys.derive(f"seal {purpose}"):
        try:
            return AESSIV(key).decrypt(data[1:], [aad])[1:]
        except InvalidTag:
            continue
    return None
