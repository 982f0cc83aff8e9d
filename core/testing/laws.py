"""How a kit says which law was broken. Knows no port."""

from __future__ import annotations

from typing import final

__all__ = ("LawBroken",)


@final
class LawBroken(AssertionError):
    """A plugin broke `law` of `port`; `detail` says what was wanted and what came."""

    def __init__(self, port: str, law: str, detail: str) -> None:
        super().__init__(f"{port} kit, law '{law}': {detail}")
        self.port = port
        self.law = law
        self.detail = detail
