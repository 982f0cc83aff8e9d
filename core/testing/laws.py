"""How a kit says which law was broken, and which had nothing to check. Knows no port."""

from __future__ import annotations

from typing import final

__all__ = ("LawBench", "LawBroken")


@final
class LawBroken(AssertionError):
    """A plugin broke `law` of `port`; `detail` says what was wanted and what came."""

    def __init__(self, port: str, law: str, detail: str) -> None:
        super().__init__(f"{port} kit, law '{law}': {detail}")
        self.port = port
        self.law = law
        self.detail = detail


class LawBench:
    """What the benches of all ports have in common: whether their law has been checked at all."""

    was_skipped = False

    def skip(self) -> None:
        """The law has nothing to say of this plugin, or what it needs was not given: a kit does
        not count it among those that hold."""
        self.was_skipped = True
