"""Which fields of a request nothing uses: their paths, each once. Knows no meaning, no header."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from typing import Final, final

__all__ = ("Ignored",)

MOST: Final = 64
LONGEST: Final = 100
INDEX: Final = re.compile(r"\[\d+\]")


@final
class Ignored:
    """Collects paths such as "messages[].cache_control", in order.

    Paths have `[]` for any index, so that a long history names a field once. Names come from the
    client: their number and length are bounded, and whoever shows them cleans them.
    """

    __slots__ = ("_paths",)

    def __init__(self) -> None:
        self._paths: dict[str, None] = {}

    def add(self, path: str) -> None:
        if len(self._paths) < MOST:
            self._paths[INDEX.sub("[]", path)[:LONGEST]] = None

    def unknown(self, given: Mapping[str, object], known: Set[str], at: str) -> dict[str, object]:
        """The fields of `given` that are not `known`: those not null are listed below `at` (""
        at the top), and all are given back."""
        if given.keys() <= known:
            return {}
        extra = {key: value for key, value in given.items() if key not in known}
        for key, value in extra.items():
            if value is not None:
                self.add(f"{at}.{key}" if at else key)
        return extra

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(self._paths)
