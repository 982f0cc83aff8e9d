"""Canonical digests of vocabularies and templates, so that two sides can prove they mean the same.

Each is sha256 hex over bytes that any implementation can make from the same facts:

- vocabulary: for each id in order, u32le id | u32le length | the token's bytes.
- added_tokens: for each id in order, u32le id | u32le length | content | u8 special.
- merges: the pre-tokenizer's canonical JSON | for each merge in order, u32le length | left |
  u32le length | right. Reported only where both are known (a GGUF names the pre-tokenizer alone).
- chat_template: the template's UTF-8 with line ends as "\\n".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from struct import pack

from msgspec import Struct

__all__ = (
    "Difference",
    "added_tokens",
    "chat_template",
    "differences",
    "merges",
    "render",
    "vocabulary",
)

MUST_AGREE = ("vocabulary", "added_tokens", "merges")


def vocabulary(tokens: Mapping[int, bytes]) -> str:
    digest = sha256(b"vocabulary\0")
    for key in sorted(tokens):
        digest.update(pack("<II", key, len(tokens[key])) + tokens[key])
    return digest.hexdigest()


def added_tokens(tokens: Iterable[tuple[int, str, bool]]) -> str:
    """From (id, content, special)."""
    digest = sha256(b"added_tokens\0")
    for key, content, special in sorted(tokens):
        data = content.encode()
        digest.update(pack("<II", key, len(data)) + data + bytes((special,)))
    return digest.hexdigest()


def merges(pairs: Iterable[tuple[str, str]], pre_tokenizer: object) -> str:
    canonical = json.dumps(pre_tokenizer, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    digest = sha256(b"merges\0" + canonical.encode())
    for left, right in pairs:
        for side in (left.encode(), right.encode()):
            digest.update(pack("<I", len(side)) + side)
    return digest.hexdigest()


def chat_template(source: str) -> str:
    text = source.replace("\r\n", "\n").replace("\r", "\n")
    return sha256(b"chat_template\0" + text.encode()).hexdigest()


def render(parts: Mapping[str, str]) -> str:
    """One digest of all that a rendered prompt depends on: the fingerprints, the revision."""
    digest = sha256(b"render\0")
    for name in sorted(parts):
        for side in (name.encode(), parts[name].encode()):
            digest.update(pack("<I", len(side)) + side)
    return digest.hexdigest()


class Difference(Struct, frozen=True):
    """A fingerprint that the two sides both report and that is not the same."""

    name: str
    ours: str
    theirs: str


def differences(ours: Mapping[str, str], theirs: Mapping[str, str]) -> tuple[Difference, ...]:
    """Those of the first three fingerprints that differ; empty: the sides may work together."""
    return tuple(
        Difference(name, ours[name], theirs[name])
        for name in MUST_AGREE
        if name in ours and name in theirs and ours[name] != theirs[name]
    )
