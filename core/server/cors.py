"""Cross-origin requests (WHATWG Fetch 3.2): who may read answers; preflights. Knows no server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import final

from tokenwire.core.config import CorsConfig
from tokenwire.core.wire import HttpReply

__all__ = ("Cors",)

EXPOSED = "retry-after, request-id, x-request-id, x-tokenwire-ignored"
EVERY_METHOD = ("DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT")

Headers = tuple[tuple[str, str], ...]


@final
class Cors:
    """The rules of one configuration. Requests without an Origin header are never touched."""

    __slots__ = ("_any", "_config", "_origins")

    def __init__(self, config: CorsConfig) -> None:
        self._config = config
        self._origins = frozenset(config.origins)
        self._any = "*" in self._origins

    def extra(self, headers: Mapping[str, str]) -> Headers:
        """What every reply to this request gets besides."""
        if not self._origins:
            return ()
        origin = headers.get("origin")
        if self._any:
            if origin is None:
                return ()
            return (
                ("access-control-allow-origin", "*"),
                ("access-control-expose-headers", EXPOSED),
            )
        if origin not in self._origins:
            return (("vary", "Origin"),)
        return (
            ("access-control-allow-origin", origin),
            ("access-control-expose-headers", EXPOSED),
            ("vary", "Origin"),
        )

    def preflight(
        self, method: str, headers: Mapping[str, str], allowed: Sequence[str]
    ) -> HttpReply | None:
        """The answer to a preflight; None for any other request. `allowed`: the path's methods."""
        if method != "OPTIONS" or "access-control-request-method" not in headers:
            return None
        origin = headers.get("origin")
        if origin is None:
            return None
        if not (self._any or origin in self._origins):
            words = f"origin {origin[:200]!r} is not among server.cors.origins\n"
            return HttpReply(403, "text/plain; charset=utf-8", words.encode())
        wanted = headers.get("access-control-request-headers", "")
        answer = {
            "access-control-allow-methods": ", ".join(allowed or EVERY_METHOD),
            "access-control-max-age": str(self._config.max_age),
        }
        # Why: "*" in this header does not cover Authorization, so what was asked for is named.
        names = wanted if "*" in self._config.headers else ", ".join(self._config.headers)
        if names:
            answer["access-control-allow-headers"] = names
        return HttpReply(204, "", b"", answer)
