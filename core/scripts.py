"""Scripts by name: what the mock engine is told to produce. Core owns them, so that the script
tokenizer and the mock engine need not know each other. Knows no protocol."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import final

from msgspec import Struct

from tokenwire.core.errors import RequestError, StoreError
from tokenwire.core.ports.store import Store
from tokenwire.core.script import (
    Script,
    ScriptToken,
)
from tokenwire.core.script_reader import read_script

__all__ = ("ScriptBook",)

NAMESPACE = "mock-scripts"
MAX_SCRIPTS = 4096
MAX_NAME = 256
MAX_RETIRED = 1 << 16


@final
class _Loaded(Struct, frozen=True):
    digest: bytes
    script: Script


@final
class ScriptBook:
    """Scripts by name, kept in the store so that all workers see them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._loaded: dict[str, _Loaded] = {}
        self._tokens: dict[int, tuple[ScriptToken, set[str]]] = {}
        # Why: a request may still be decoding what a script said before it was replaced.
        self._retired: dict[int, ScriptToken] = {}

    async def put(self, name: str, body: bytes) -> Script:
        """Compile and keep; raises RequestError that says what is wrong with the body."""
        if not 0 < len(name) <= MAX_NAME:
            raise RequestError(
                f"a script's name has 1 to {MAX_NAME} characters, got {len(name)}", param="name"
            )
        if name not in self._loaded and len(self._loaded) >= MAX_SCRIPTS:
            raise RequestError(f"there are {MAX_SCRIPTS} scripts already: delete some first")
        script = self._install(name, body)
        await self._store.set(NAMESPACE, name, body)
        return script

    async def load(self, name: str) -> Script | None:
        """Bring a script into this process, so that `get` and `token` know it; None: there is none.

        Raises RequestError where it contradicts another loaded script.
        """
        try:
            body = await self._store.get(NAMESPACE, name)
        except StoreError:
            return self.get(name)
        if body is None:
            self._uninstall(name)
            return None
        held = self._loaded.get(name)
        if held is not None and held.digest == sha256(body).digest():
            return held.script
        return self._install(name, body)

    async def delete(self, name: str) -> bool:
        """Whether there was one."""
        self._uninstall(name)
        return await self._store.delete(NAMESPACE, name)

    async def names(self) -> tuple[str, ...]:
        """All scripts, in order."""
        return tuple(sorted(await self._store.keys(NAMESPACE)))

    def get(self, name: str) -> Script | None:
        """A loaded script."""
        held = self._loaded.get(name)
        return None if held is None else held.script

    def token(self, id: int) -> ScriptToken | None:
        """A minted id of any loaded script."""
        held = self._tokens.get(id)
        return self._retired.get(id) if held is None else held[0]

    def _install(self, name: str, body: bytes) -> Script:
        script = read_script(body)
        self._check_others(name, script.tokens)
        self._uninstall(name)
        for token in script.tokens:
            self._tokens.setdefault(token.id, (token, set()))[1].add(name)
            self._retired.pop(token.id, None)
        self._loaded[name] = _Loaded(sha256(body).digest(), script)
        return script

    def _check_others(self, name: str, tokens: Iterable[ScriptToken]) -> None:
        for token in tokens:
            held = self._tokens.get(token.id)
            if held is not None and held[0] != token and held[1] != {name}:
                other = min(held[1] - {name})
                raise RequestError(
                    f"id {token.id} of piece {token.bytes!r} already stands for {held[0].bytes!r} "
                    f"in script {other!r}: give the piece another fixed id, or delete that script",
                    param="special",
                )

    def _uninstall(self, name: str) -> None:
        held = self._loaded.pop(name, None)
        for token in () if held is None else held.script.tokens:
            owners = self._tokens[token.id][1]
            owners.discard(name)
            if not owners:
                del self._tokens[token.id]
                self._retired[token.id] = token
        while len(self._retired) > MAX_RETIRED:
            del self._retired[next(iter(self._retired))]
