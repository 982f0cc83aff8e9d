"""What the mock engine is told to produce, as values. Knows no JSON, no store and no engine."""

from __future__ import annotations

from hashlib import sha256

from msgspec import Struct

from tokenwire.core.token_ids import TokenIds

__all__ = (
    "FIRST_FREE_ID",
    "FIRST_MINTED_ID",
    "SCRIPT_VOCABULARY_SIZE",
    "Script",
    "ScriptStep",
    "ScriptToken",
    "mint",
)

FIRST_FREE_ID = 512
"""Ids below are the script tokenizer's own (bytes, eos): a script may not fix one."""
FIRST_MINTED_ID = 1 << 16
"""Minted ids start here, so that they never meet a byte or a small fixed id."""
SCRIPT_VOCABULARY_SIZE = 1 << 31
"""Every id of every script is below."""


class ScriptToken(Struct, frozen=True):
    """One minted id: the bytes it stands for."""

    id: int
    bytes: bytes
    special: bool = False


class ScriptStep(Struct, frozen=True):
    """One engine step of a script: ids, or a pause, or a fault."""

    ids: TokenIds = TokenIds()
    sleep_s: float = 0.0
    error: str | None = None


class Script(Struct, frozen=True):
    """A compiled script. Ids follow from the content alone."""

    steps: tuple[ScriptStep, ...]
    tokens: tuple[ScriptToken, ...]
    """Each minted id once, those of `choices` included."""
    prompt_tail: str = ""
    finish: str = "eos"
    """eos, length or abort."""
    eos_id: int | None = None
    """The id that the script fixes for its last piece `<eos>`; None: the model's own."""
    logprobs: tuple[tuple[float, ...], ...] = ()
    """Of token i: the chosen one's, then the top values."""
    choices: tuple[Script, ...] = ()
    """Scripts of choices 0, 1, ...; empty: every choice plays this one."""


def mint(data: bytes, *, special: bool) -> int:
    """The id of a piece: from sha256 of its bytes and whether it is special, nothing else."""
    digest = sha256(b"script\0" + bytes((special,)) + data).digest()
    span = SCRIPT_VOCABULARY_SIZE - FIRST_MINTED_ID
    return FIRST_MINTED_ID + int.from_bytes(digest[:8], "little") % span
