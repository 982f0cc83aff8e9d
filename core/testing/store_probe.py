"""What a law of the store kit works with: stores to open, fresh names, time, a way to complain."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeAlias, final
from uuid import uuid4

from tokenwire.core.errors import StoreError
from tokenwire.core.ports.store import Store
from tokenwire.core.testing.laws import Probe, short

__all__ = ("Advance", "Make", "StoreProbe")

Make: TypeAlias = Callable[[], AbstractAsyncContextManager[Store]]
Advance: TypeAlias = Callable[[float], Awaitable[object]]


@final
class StoreProbe(Probe):
    """For one run of one law."""

    port = "store"

    def __init__(self, make: Make, advance: Advance, law: str) -> None:
        super().__init__(law)
        self.open = make
        self.advance = advance
        self._stem = f"kit:{law}:{uuid4().hex}"
        self._spaces = 0

    def space(self) -> str:
        """A namespace that nobody has used."""
        self._spaces += 1
        return f"{self._stem}:{self._spaces}"

    async def refuses(self, what: str, call: Awaitable[object]) -> None:
        """StoreError and nothing else."""
        try:
            got = await call
        except StoreError:
            return
        except Exception as error:
            self.broken(f"{what}: wanted StoreError, got {type(error).__name__}: {error}")
        else:
            self.broken(f"{what}: wanted StoreError, got the answer {short(got)}")
