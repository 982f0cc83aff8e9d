"""A group that shall not start as it was told, because another layout is better: ends its ranks,
and reaches whoever started them. Knows no torch and no socket."""

from __future__ import annotations

from typing import final

from tokenwire.plugins.engines.cuda.parallel.frames import Instead

__all__ = ("FellBack",)


@final
class FellBack(Exception):
    """Raised on every rank, and again in the front, which starts `instead`. Not an error."""

    def __init__(self, instead: Instead) -> None:
        super().__init__(instead.reason)
        self.instead = instead

    def __reduce__(self) -> tuple[type[FellBack], tuple[Instead]]:
        return FellBack, (self.instead,)
