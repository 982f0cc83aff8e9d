"""Which fields of a request nothing uses: paths for a header, each once. Knows no meaning."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, final

__all__ = ("Ledger",)

MOST: Final = 64
LONGEST: Final = 80
ODD: Final = re.compile(r"[^A-Za-z0-9_.:=\[\]-]")


@final
class Ledger:
    """Paths have `[]` for any index, so that a long history names a field once.

    Names come from the client and go into a header: what is odd in them becomes "?", and their
    number and length are bounded.
    """

    __slots__ = ("_paths",)

    def __init__(self) -> None:
        self._paths: dict[str, None] = {}

    def add(self, path: str) -> None:
        if len(self._paths) < MOST:
            self._paths[ODD.sub("?", path[:LONGEST])] = None

    def unknown(
        self, value: Mapping[str, object], known: Iterable[str], spot: str
    ) -> dict[str, object]:
        """The fields of `value` that are not `known`: listed, unless null, and given back."""
        extra = {key: value[key] for key in value.keys() - known}
        if not extra:
            return extra
        for key in sorted(extra):
            if extra[key] is not None:
                self.add(f"{spot}.{key}" if spot else key)
        return extra

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(self._paths)
