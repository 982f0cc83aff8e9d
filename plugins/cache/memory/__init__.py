"""The store `memory`: this process's own, bounded. The default."""

from __future__ import annotations

from collections.abc import Iterable

from tokenwire.core.factory import Factory, Services
from tokenwire.core.hookspecs import impl
from tokenwire.core.ports.store import Store
from tokenwire.plugins.cache.memory.settings import MemorySettings

__all__ = ("register_stores",)


def _build(settings: MemorySettings, services: Services) -> Store:
    from tokenwire.plugins.cache.memory.store import MemoryStore

    return MemoryStore(max_bytes=settings.max_bytes)


@impl
def register_stores() -> Iterable[Factory[Store]]:
    yield Factory("memory", MemorySettings, _build, "in this process, bounded, lost at exit")
