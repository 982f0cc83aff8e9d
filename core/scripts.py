"""Scripts: what the mock engine is told to produce, piece by piece. Core owns them, so that the script
tokenizer and the mock engine need not know each other. Knows no protocol."""

from __future__ import annotations

from typing import final

from msgspec import Struct

from tokenwire.core.ports.store import Store
from tokenwire.core.token_ids import TokenIds

__all__ = ("Script", "ScriptBook", "ScriptStep", "ScriptToken")


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
    prompt_tail: str = ""
    finish: str = "eos"
    logprobs: tuple[tuple[float, ...], ...] = ()
    """Of token i: the chosen one's, then the top values."""
    choices: tuple[Script, ...] = ()
    """Scripts of choices 0, 1, ...; empty: every choice plays this one."""


@final
class ScriptBook:
    """Scripts by name, kept in the store so that all workers see them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def put(self, name: str, body: bytes) -> Script:
        """Compile and keep; raises RequestError that says what is wrong with the body."""
        raise NotImplementedError

    async def load(self, name: str) -> Script | None:
        """Bring a script into this process, so that `get` and `token` know it."""
        raise NotImplementedError

    def get(self, name: str) -> Script | None:
        """A loaded script."""
        raise NotImplementedError

    def token(self, id: int) -> ScriptToken | None:
        """A minted id of any loaded script."""
        raise NotImplementedError
