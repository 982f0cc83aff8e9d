"""Keys to tenants, in constant time. Knows no route: what no protocol answers is not guarded.

Keys are kept and compared as digests, each with each, so that how long it takes tells neither how
much of a key was right nor whose it was.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from hmac import compare_digest
from typing import Final, final

from msgspec import Struct
from msgspec.structs import replace

from tokenwire.core.call import Identity
from tokenwire.core.errors import ConfigError, ErrorKind, RequestError
from tokenwire.core.ports.guard import Guard
from tokenwire.core.secrets import Secret, SecretWatch
from tokenwire.core.wire import HttpRequest

__all__ = ("ApiKeys", "Settings")

log = logging.getLogger("tokenwire.guards.api_keys")

SHORTEST: Final = 16
"""Bytes of a key: shorter ones can be guessed."""
LOOK_S: Final = 10.0
"""How often files are looked at, at most."""
NOBODY: Final = Identity().tenant
WHERE: Final = "send it as `Authorization: Bearer KEY` or as `x-api-key: KEY`"


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """No keys: everybody comes in, and all are one tenant."""

    keys: Mapping[str, tuple[Secret, ...]] = {}
    """By tenant, `env:NAME` or `file:PATH`; several, so that a client can change from one to the
    next. A file is read again once it has changed."""

    def __post_init__(self) -> None:
        for tenant, keys in self.keys.items():
            if not tenant or tenant == NOBODY:
                raise ValueError(
                    f"keys: wanted the name of a tenant, got {tenant!r}, which stands for all that"
                    " have none"
                )
            if not keys:
                raise ValueError(f"keys.{tenant}: wanted at least one key, got none")


@final
class ApiKeys(Guard):
    """Asks for nothing where no key is configured."""

    def __init__(
        self, settings: Settings, environ: Mapping[str, str], clock: Callable[[], float]
    ) -> None:
        """`clock`: seconds. Raises ConfigError for a key that is not there or will not do."""
        self._watches = [
            (tenant, SecretWatch(secret, environ))
            for tenant, secrets in settings.keys.items()
            for secret in secrets
        ]
        self._clock = clock
        self._looked = clock()
        self._tenants = _digests(self._watches)

    async def admit(self, request: HttpRequest, identity: Identity) -> Identity:
        if not self._watches:
            return identity
        if self._clock() - self._looked >= LOOK_S:
            self._look()
        given = list(_given(request.headers))
        for key in given:
            tenant = self._tenant(key)
            if tenant is not None:
                return replace(identity, tenant=tenant)
        what = "the API key is not one of this server's" if given else "an API key is wanted"
        raise RequestError(
            f"{what}: {WHERE}; who runs the server gives out keys",
            kind=ErrorKind.AUTHENTICATION,
            code="invalid_api_key",
        )

    def _tenant(self, key: bytes) -> str | None:
        found = None
        digest = sha256(key).digest()
        for known, tenant in self._tenants:
            if compare_digest(known, digest):
                found = tenant
        return found

    def _look(self) -> None:
        """Take up keys whose files have changed; what cannot be taken up changes nothing."""
        self._looked = self._clock()
        try:
            if any([watch.refresh() for _, watch in self._watches]):
                self._tenants = _digests(self._watches)
                log.info("plugins.api_keys: took up changed keys")
        except ConfigError as error:
            log.warning("plugins.api_keys: keeping the old keys: %s", error)


def _given(headers: Mapping[str, str]) -> Iterator[bytes]:
    """The keys that a request has, the one of `authorization` first."""
    scheme, _, token = headers.get("authorization", "").strip().partition(" ")
    for key in (token if scheme.lower() == "bearer" else "", headers.get("x-api-key", "")):
        if key.strip():
            yield key.strip().encode("utf-8", "surrogateescape")


def _digests(watches: list[tuple[str, SecretWatch]]) -> tuple[tuple[bytes, str], ...]:
    found: dict[bytes, str] = {}
    for tenant, watch in watches:
        name = f"{watch.secret.source}:{watch.secret.name}"
        if len(watch.value) < SHORTEST:
            raise ConfigError(
                f"plugins.api_keys.keys.{tenant}: {name}: wanted {SHORTEST} bytes or more, got"
                f" {len(watch.value)}"
            )
        digest = sha256(watch.value).digest()
        if found.setdefault(digest, tenant) != tenant:
            raise ConfigError(
                f"plugins.api_keys.keys.{tenant}: {name}: is also a key of {found[digest]!r}: give"
                " each tenant its own"
            )
    return tuple(found.items())
