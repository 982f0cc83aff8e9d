"""A tokenizer.json as values: the parts that the library does not show. Encodes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct
from tokenizers import AddedToken, Tokenizer

from tokenwire.core.errors import ConfigError

__all__ = ("FileToken", "ModelPart", "TokenizerFile", "id_of", "read")


class FileToken(Struct, frozen=True):
    """An added token: how it is matched. `normalized`: in normalised text, not in the raw one."""

    content: str
    id: int = -1
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False
    normalized: bool = True
    special: bool = False

    def spelled(self, spelling: str) -> AddedToken:
        """The library's token of the same flags, matched by `spelling`."""
        return AddedToken(
            spelling,
            single_word=self.single_word,
            lstrip=self.lstrip,
            rstrip=self.rstrip,
            normalized=self.normalized,
            special=self.special,
        )


def id_of(library: Tokenizer, token: str) -> int:
    """Raises ConfigError where the vocabulary has no such token."""
    id = library.token_to_id(token)
    if id is None:
        raise ConfigError(f"tokenizer.json: the vocabulary has no token {token!r}")
    return id


class ModelPart(Struct, frozen=True):
    type: str = ""
    merges: list[str | tuple[str, str]] | None = None

    def pairs(self) -> list[tuple[str, str]]:
        """Merges as pairs; older files have them as "left right"."""
        pairs = []
        for merge in self.merges or ():
            left, right = merge.split(" ", 1) if isinstance(merge, str) else merge
            pairs.append((left, right))
        return pairs


class TokenizerFile(Struct, frozen=True):
    """The vocabulary is left out: the library has it."""

    added_tokens: tuple[FileToken, ...] = ()
    normalizer: Mapping[str, object] | None = None
    pre_tokenizer: Mapping[str, object] | None = None
    decoder: Mapping[str, object] | None = None
    model: ModelPart = ModelPart()


def read(path: Path) -> TokenizerFile:
    try:
        return msgspec.json.decode(path.read_bytes(), type=TokenizerFile)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: wanted a tokenizer.json of Hugging Face: {error}") from error
