"""Which named fields nothing uses: collected while a request is read, without their indexes."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import final

__all__ = ("Notes",)


@final
class Notes:
    """Collects paths such as "messages[].cache_control", each once and in order."""

    __slots__ = ("_paths",)

    def __init__(self) -> None:
        self._paths: dict[str, None] = {}

    def add(self, path: str) -> None:
        self._paths[path] = None

    def unknown(self, given: Mapping[str, object], known: Set[str], at: str) -> dict[str, object]:
        """The fields of `given` that are not among `known`; those not null are noted below `at`."""
        if given.keys() <= known:
            return {}
        extra = {key: value for key, value in given.items() if key not in known}
        for key, value in extra.items():
            if value is not None:
                self._paths[at + key] = None
        return extra

    def paths(self) -> tuple[str, ...]:
        return tuple(self._paths)
