"""What a law of the store kit works with: stores to open, fresh names, time, a way to complain."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import NoReturn, TypeAlias, final
from uuid import uuid4

from tokenwire.core.errors import StoreError
from tokenwire.core.ports.store import Store
from tokenwire.core.testing.laws import LawBroken

__all__ = ("PORT", "Advance", "Bench", "Make")

PORT = "store"

Make: TypeAlias = Callable[[], AbstractAsyncContextManager[Store]]
Advance: TypeAlias = Callable[[float], Awaitable[object]]


@final
class Bench:
    """For one run of one law."""

    def __init__(self, make: Make, advance: Advance, law: str) -> None:
        self.open = make
        self.advance = advance
        self._law = law
        self._stem = f"kit:{law}:{uuid4().hex}"
        self._spaces = 0

    def space(self) -> str:
        """A namespace that nobody has used."""
        self._spaces += 1
        return f"{self._stem}:{self._spaces}"

    def equal(self, what: str, got: object, wanted: object) -> None:
        if got != wanted:
            self.broken(f"{what}: wanted {_short(wanted)}, got {_short(got)}")

    def true(self, what: str, holds: bool) -> None:
        if not holds:
            self.broken(what)

    def broken(self, detail: str) -> NoReturn:
        raise LawBroken(PORT, self._law, detail)

    async def refuses(self, what: str, call: Awaitable[object]) -> None:
        """StoreError and nothing else."""
        try:
            got = await call
        except StoreError:
            return
        except Exception as error:
            self.broken(f"{what}: wanted StoreError, got {type(error).__name__}: {error}")
        else:
            self.broken(f"{what}: wanted StoreError, got the answer {_short(got)}")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}... ({len(text)} characters)"
