"""A store on a Redis or Valkey server: names to keys, ops to Lua, every failure to StoreError.

Connections come from connect.py, time bounds and the circuit breaker from core/breaker.py. A call
is never sent twice: whether a lost one took effect is not known, and only the caller knows whether
that matters.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import TypeVar, cast, final

from redis.asyncio import Redis
from redis.exceptions import ConnectionError as LostError
from redis.exceptions import NoScriptError, ReadOnlyError, RedisError
from redis.exceptions import TimeoutError as SlowError

from tokenwire.core.breaker import Breaker
from tokenwire.core.errors import StoreError
from tokenwire.core.ports.store import AtomicOp, Store, name_bytes, name_text
from tokenwire.core.resolve import addresses
from tokenwire.plugins.cache.redis.connect import Connector, Resolve
from tokenwire.plugins.cache.redis.lua import arguments, milliseconds, script_of
from tokenwire.plugins.cache.redis.settings import RedisSettings

__all__ = ("RedisStore",)

T = TypeVar("T")

SCAN_CALLS = 40
"""How many times timeout_s listing a namespace may take: SCAN walks the whole server."""

GLOB = re.compile(rb"([*?\[\]\\])")


@final
class RedisStore(Store):
    """Opens nothing until the first call; belongs to the loop that makes that call."""

    durability = "shared"

    def __init__(self, settings: RedisSettings, *, resolve: Resolve = addresses) -> None:
        self._settings = settings
        self._connector = Connector(settings, resolve)
        self._is_closed = False
        self._breaker = Breaker(
            f"the Redis at {settings.endpoint}",
            timeout_s=settings.timeout_s,
            probe=self._ping,
            losses=(LostError, SlowError),
        )

    async def get(self, namespace: str, key: str) -> bytes | None:
        name = self._key(namespace, key)
        return cast("bytes | None", await self._run(lambda redis: redis.get(name)))

    async def set(
        self, namespace: str, key: str, value: bytes, *, ttl_s: float | None = None
    ) -> None:
        name, ttl_ms = self._key(namespace, key), milliseconds(ttl_s)
        if ttl_ms is not None and ttl_ms <= 0:
            await self._run(lambda redis: redis.delete(name))
        else:
            await self._run(lambda redis: redis.set(name, value, px=ttl_ms))

    async def delete(self, namespace: str, key: str) -> bool:
        name = self._key(namespace, key)
        return bool(await self._run(lambda redis: redis.delete(name)))

    async def keys(self, namespace: str) -> tuple[str, ...]:
        start = self._key(namespace, "")
        pattern = GLOB.sub(rb"\\\1", start) + b"*"

        async def scan(redis: Redis) -> set[bytes]:
            found: set[bytes] = set()
            async for name in redis.scan_iter(match=pattern, count=1000):
                found.add(name)
            return found

        bound = SCAN_CALLS * self._settings.timeout_s
        names = await self._run(scan, timeout_s=bound)
        return tuple(name_text(name[len(start) :]) for name in names)

    async def apply(self, op: AtomicOp, namespace: str, key: str) -> float:
        name, script, given = self._key(namespace, key), script_of(op), arguments(op)

        async def call(redis: Redis) -> object:
            try:
                return await redis.evalsha(script.sha, 1, name, *given)
            except NoScriptError:
                return await redis.eval(script.source, 1, name, *given)

        answer = await self._run(call)
        try:
            return float(cast(bytes, answer))
        except (TypeError, ValueError) as error:
            raise StoreError(f"{op.__class__.__name__}: Redis answered {answer!r}") from error

    async def close(self) -> None:
        self._is_closed = True
        await self._breaker.close()
        await self._connector.close()

    def _key(self, namespace: str, key: str) -> bytes:
        """prefix:LENGTH:namespace:key: exact, because a prefix has no colon."""
        space = name_bytes(namespace)
        return b"%s:%d:%s:%s" % (
            self._settings.prefix.encode(),
            len(space),
            space,
            name_bytes(key),
        )

    async def _run(
        self, call: Callable[[Redis], Awaitable[T]], *, timeout_s: float | None = None
    ) -> T:
        if self._is_closed:
            raise StoreError("the Redis store is closed")
        return await self._breaker.run(lambda: self._attempt(call), timeout_s=timeout_s)

    async def _attempt(self, call: Callable[[Redis], Awaitable[T]]) -> T:
        redis = await self._connector.client()
        try:
            return await call(redis)
        except (LostError, SlowError, OSError):
            self._connector.drop(redis)
            raise
        except ReadOnlyError as error:
            # Why: a replica answered; another address of the same name may be the primary.
            self._connector.drop(redis)
            raise StoreError(f"the Redis at {self._settings.endpoint} is a replica") from error
        except RedisError as error:
            raise StoreError(f"Redis refused the call: {error}") from error

    async def _ping(self) -> None:
        # Why: a server that went away without a word leaves connections that look alive.
        self._connector.drop()
        await self._attempt(lambda redis: cast("Awaitable[object]", redis.ping()))
