"""What the small configuration files say of tokens: names, end ids, tokens the file lacks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from tokenwire.core.checkpoint import Checkpoint
from tokenwire.plugins.tokenizers.hf.file import FileToken

__all__ = ("TokenNames", "token_names")

LISTS = ("additional_special_tokens", "extra_special_tokens")


class TokenNames(msgspec.Struct, frozen=True):
    bos: str | None = None
    eos: str | None = None
    pad: str | None = None
    unk: str | None = None
    special: frozenset[str] = frozenset()
    """Named as special, these among them, whether or not the tokenizer's file says so."""
    more: tuple[FileToken, ...] = ()
    """Listed as added tokens, in order of their ids."""
    eos_ids: tuple[int, ...] = ()
    """Of generation_config.json, else of config.json."""


def token_names(checkpoint: Checkpoint) -> TokenNames:
    config = checkpoint.tokenizer_config()
    named = {key: _spelling(config.get(f"{key}_token")) for key in ("bos", "eos", "pad", "unk")}
    listed = [_spelling(entry) for key in LISTS for entry in _entries(config.get(key))]
    more = tuple(_listed(config.get("added_tokens_decoder")))
    special = {name for name in (*named.values(), *listed) if name}
    special |= {token.content for token in more if token.special}
    return TokenNames(
        **named,
        special=frozenset(special),
        more=more,
        eos_ids=_ids(checkpoint.generation_config()) or _ids(checkpoint.config()),
    )


def _spelling(entry: object) -> str | None:
    """A token's text; some files write it as an AddedToken object."""
    if isinstance(entry, Mapping):
        entry = entry.get("content")
    return entry if isinstance(entry, str) and entry else None


def _entries(value: object) -> Iterable[object]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list) else ()


def _listed(entries: object) -> Iterable[FileToken]:
    if not isinstance(entries, Mapping):
        return
    for key in sorted((key for key in entries if str(key).isdigit()), key=int):
        entry = entries[key]
        if _spelling(entry):
            yield msgspec.convert({**entry, "id": int(key)}, FileToken)


def _ids(config: Mapping[str, object]) -> tuple[int, ...]:
    value = config.get("eos_token_id")
    ids = value if isinstance(value, list) else [value]
    return tuple(id for id in ids if isinstance(id, int) and not isinstance(id, bool) and id >= 0)
