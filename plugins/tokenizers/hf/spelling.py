"""How a vocabulary spells bytes: from a token's string to its bytes, by the file's decoder part.

Three spellings are known: byte-level (each character stands for a byte), SentencePiece's (a mark
for the space, `<0xAB>` for a byte) and WordPiece's (a prefix for what goes on a word). Clean-up of
spaces is never done: it depends on the neighbours, so streams and whole answers would differ.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from msgspec import Struct

from tokenwire.core.errors import ConfigError

__all__ = ("Spelling", "byte_alphabet", "spelling")

ToBytes: TypeAlias = Callable[[str], bytes]
BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


class Spelling(Struct, frozen=True):
    to_bytes: ToBytes
    strips_leading_space: bool = False


def byte_alphabet() -> dict[int, str]:
    """Byte -> the character that stands for it in byte-level vocabularies (GPT-2's table): itself
    where that is printable Latin-1, else the next of U+0100, U+0101, ..."""
    table = {}
    spare = 256
    for byte in range(256):
        if 0x21 <= byte <= 0x7E or (0xA1 <= byte <= 0xFF and byte != 0xAD):
            table[byte] = chr(byte)
        else:
            table[byte] = chr(spare)
            spare += 1
    return table


def spelling(decoder: Mapping[str, object] | None) -> Spelling:
    """Raises ConfigError for a decoder whose bytes depend on a token's neighbours."""
    steps = _steps(decoder)
    kinds = [step.get("type") for step in steps]
    if "ByteLevel" in kinds:
        return Spelling(_byte_level())
    if not kinds:
        return Spelling(_words(""), strips_leading_space=True)
    if kinds == ["WordPiece"]:
        return Spelling(_words(str(steps[0].get("prefix", "##"))), strips_leading_space=True)
    return _sentencepiece(steps)


def _steps(decoder: Mapping[str, object] | None) -> list[Mapping[str, object]]:
    if decoder is None:
        return []
    inner = decoder.get("decoders")
    if isinstance(inner, list):
        return [step for part in inner for step in _steps(part)]
    return [decoder]


def _byte_level() -> ToBytes:
    alphabet = {ord(letter): chr(byte) for byte, letter in byte_alphabet().items()}
    # Why: what is outside the alphabet must make the Latin-1 encoder fail, spaces included.
    table = {code: "\uffff" for code in range(256)} | alphabet

    def to_bytes(token: str) -> bytes:
        try:
            return token.translate(table).encode("latin-1")
        except UnicodeEncodeError:
            return token.encode()

    return to_bytes


def _words(prefix: str) -> ToBytes:
    def to_bytes(token: str) -> bytes:
        if prefix and token.startswith(prefix):
            return token[len(prefix) :].encode()
        return b" " + token.encode()

    return to_bytes


def _sentencepiece(steps: list[Mapping[str, object]]) -> Spelling:
    replacements: list[tuple[str, str]] = []
    falls_back = strips = False
    for step in steps:
        match step:
            case {"type": "Replace", "pattern": {"String": str(old)}, "content": str(new)}:
                replacements.append((old, new))
            case {"type": "Metaspace"}:
                replacements.append((str(step.get("replacement", "▁")), " "))
                strips = step.get("prepend_scheme", "always") != "never"
            case {"type": "Strip", "content": " ", "start": 1, "stop": 0}:
                strips = True
            case {"type": "ByteFallback"}:
                falls_back = True
            case {"type": "Fuse"} | {"type": "Strip", "start": 0, "stop": 0}:
                pass
            case _:
                raise ConfigError(
                    f"tokenizer.json: decoder {step!r:.200} is none that `hf` can stream; "
                    "ByteLevel, Metaspace, WordPiece, Replace, ByteFallback, Fuse and Strip are"
                )

    def to_bytes(token: str) -> bytes:
        if falls_back and (match := BYTE.fullmatch(token)):
            return bytes.fromhex(match[1])
        for old, new in replacements:
            token = token.replace(old, new)
        return token.encode()

    return Spelling(to_bytes, strips)
