"""The store `redis`: a Redis 6.2+ or Valkey server, shared by every gateway that uses it."""

from __future__ import annotations

from collections.abc import Iterable

from tokenwire.core.errors import ConfigError
from tokenwire.core.factory import Factory, Services
from tokenwire.core.hookspecs import impl
from tokenwire.core.ports.store import Store
from tokenwire.plugins.cache.redis.settings import RedisSettings

__all__ = ("register_stores",)


def _build(settings: RedisSettings, services: Services) -> Store:
    try:
        from tokenwire.plugins.cache.redis.store import RedisStore
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "redis":
            raise
        raise ConfigError(
            "cache.type is redis, but the library redis is not installed:"
            " pip install 'tokenwire[redis]'"
        ) from error
    return RedisStore(settings)


@impl
def register_stores() -> Iterable[Factory[Store]]:
    yield Factory("redis", RedisSettings, _build, "a Redis 6.2+ or Valkey server, shared")
