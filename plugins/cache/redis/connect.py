"""Which server to talk to: the endpoint as a client, made anew after a loss. Knows no store.

`internal://` names are resolved on every reconnect, and the first address that answers is used,
starting after the one that was used last. The other forms are given to redis-py as they stand.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, final

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.credentials import CredentialProvider
from redis.exceptions import ConnectionError as LostError
from redis.exceptions import RedisError

from tokenwire.core.errors import ConfigError, StoreError
from tokenwire.core.resolve import INTERNAL, Endpoint, addresses, parse_internal
from tokenwire.core.secrets import Secret, read
from tokenwire.plugins.cache.redis.settings import RedisSettings

__all__ = ("Connector", "Resolve")

Resolve: TypeAlias = Callable[[Endpoint], Awaitable[tuple[Endpoint, ...]]]


@final
class _Secrets(CredentialProvider):
    """Reads the password for each connection, so that a changed file is seen."""

    def __init__(self, username: str | None, password: Secret | None) -> None:
        self._username = username
        self._password = password

    def get_credentials(self) -> tuple[str] | tuple[str, str]:
        """Raises StoreError where there is none."""
        secret = ""
        if self._password is not None:
            try:
                secret = read(self._password, os.environ).decode()
            except (ConfigError, UnicodeDecodeError) as error:
                raise StoreError(f"cache.password: {error}") from error
        return (secret,) if self._username is None else (self._username, secret)


@final
class Connector:
    """At most one client at a time, each with its own pool."""

    def __init__(self, settings: RedisSettings, resolve: Resolve = addresses) -> None:
        self._settings = settings
        self._resolve = resolve
        self._client: Redis | None = None
        self._turn = 0
        self._connecting = asyncio.Lock()
        self._closing: set[asyncio.Task[None]] = set()

    async def client(self) -> Redis:
        """Raises redis-py's ConnectionError, OSError or StoreError (no secret). Bounded by the
        caller."""
        if self._client is not None:
            return self._client
        async with self._connecting:
            if self._client is None:
                self._client = await self._connect()
            return self._client

    def drop(self, client: Redis | None = None) -> None:
        """The next call connects anew. Another client than the current one is dropped already."""
        current = self._client
        if current is None or client not in (None, current):
            return
        self._client = None
        closing = asyncio.get_running_loop().create_task(_close(current))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """A second call does nothing."""
        self.drop()
        if self._closing:
            await asyncio.wait(self._closing, timeout=self._settings.timeout_s)

    async def _connect(self) -> Redis:
        endpoint = self._settings.endpoint
        if not endpoint.startswith(INTERNAL):
            return Redis(connection_pool=self._pool(endpoint))
        places = await self._resolve(parse_internal(endpoint))
        first = self._turn % len(places)
        share = self._settings.timeout_s / len(places)
        problem: Exception | None = None
        for place in (*places[first:], *places[:first]):
            self._turn += 1
            client = Redis(connection_pool=self._pool(f"redis://{place}"))
            try:
                async with asyncio.timeout(share):
                    await client.ping()
            except (RedisError, OSError) as error:
                problem = error
                await _close(client)
            except BaseException:
                await _close(client)
                raise
            else:
                return client
        raise LostError(f"none of {len(places)} addresses of {endpoint} answers") from problem

    def _pool(self, url: str) -> BlockingConnectionPool:
        settings = self._settings
        options: dict[str, Any] = {}
        if settings.username is not None or settings.password is not None:
            options["credential_provider"] = _Secrets(settings.username, settings.password)
        if settings.ca_file is not None and url.startswith("rediss:"):
            options["ssl_ca_certs"] = settings.ca_file
        # Why: each call is bounded as a whole by the breaker, waiting for a connection included;
        # it decides about trying again, too, and a lost op must not be sent twice.
        return BlockingConnectionPool.from_url(
            url,
            max_connections=settings.connections,
            timeout=None,
            socket_connect_timeout=settings.timeout_s,
            socket_timeout=None,
            retry=Retry(NoBackoff(), 0),
            protocol=2,
            **options,
        )


async def _close(client: Redis) -> None:
    try:
        await client.aclose()
        await client.connection_pool.disconnect()
    except (RedisError, OSError):
        pass
