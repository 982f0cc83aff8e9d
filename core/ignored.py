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
        self._paths: dict[str, bool] = {}  # Whether it is a field that nobody knows.

    def add(self, path: str) -> None:
        """What is known and has no use here."""
        self._add(path, is_unknown=False)

    def unknown(self, given: Mapping[str, object], known: Set[str], at: str) -> dict[str, object]:
        """The fields of `given` that are not `known`: those not null are listed below `at` (""
        at the top), and all are given back."""
        if given.keys() <= known:
            return {}
        extra = {key: value for key, value in given.items() if key not in known}
        for key, value in extra.items():
            if value is not None:
                self._add(f"{at}.{key}" if at else key, is_unknown=True)
        return extra

    def _add(self, path: str, *, is_unknown: bool) -> None:
        if len(self._paths) < MOST:
            self._paths[INDEX.sub("[]", path)[:LONGEST]] = is_unknown

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(self._paths)

    @property
    def unknown_paths(self) -> tuple[str, ...]:
        """Of those, what `unknown` listed."""
        return tuple(path for path, is_unknown in self._paths.items() if is_unknown)
