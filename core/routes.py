"""The one route table: every codec's routes, matched by method and path. Knows no server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias, final

from msgspec import Struct

from tokenwire.core.errors import PluginError
from tokenwire.core.ports.codec import Codec
from tokenwire.core.wire import Route

__all__ = ("Match", "RouteTable")


class Match(Struct, frozen=True):
    """What a path leads to. `codec` None: no route has this path. `allowed`: methods it does have;
    a match whose method is not among them is a 405 in the shape of `codec`."""

    codec: Codec | None
    params: Mapping[str, str] = {}
    allowed: tuple[str, ...] = ()
    query: tuple[str, ...] = ()
    """Parameters of the query string that the route reads."""


NO_MATCH = Match(None)
Methods: TypeAlias = dict[str, tuple[Codec, Route]]


@final
class RouteTable:
    """Paths match exactly, or segment by segment where the route has `{name}`."""

    __slots__ = ("_exact", "_patterns", "routes")

    def __init__(self, codecs: Iterable[Codec]) -> None:
        """Raises PluginError when two codecs claim one method and path."""
        self.routes: tuple[tuple[Route, Codec], ...] = tuple(
            (route, codec) for codec in codecs for route in codec.routes
        )
        self._exact: dict[str, Methods] = {}
        self._patterns: dict[tuple[str, ...], Methods] = {}
        for route, codec in self.routes:
            methods = (
                self._patterns.setdefault(tuple(route.path.split("/")), {})
                if "{" in route.path
                else self._exact.setdefault(route.path, {})
            )
            owner, _ = methods.setdefault(route.method, (codec, route))
            if owner is not codec:
                raise PluginError(
                    f"codecs {owner.name!r} and {codec.name!r} both claim"
                    f" {route.method} {route.path}; block one of them"
                )

    def match(self, method: str, path: str) -> Match:
        methods = self._exact.get(path)
        if methods is not None:
            return self._found(methods, method, {})
        segments = path.split("/")
        for pattern, methods in self._patterns.items():
            params = _fit(pattern, segments)
            if params is not None:
                return self._found(methods, method, params)
        return NO_MATCH

    @staticmethod
    def _found(methods: Methods, method: str, params: dict[str, str]) -> Match:
        codec, route = methods.get(method) or next(iter(methods.values()))
        return Match(codec, params, tuple(methods), route.query)


def _fit(pattern: tuple[str, ...], segments: list[str]) -> dict[str, str] | None:
    if len(pattern) != len(segments):
        return None
    params: dict[str, str] = {}
    for want, got in zip(pattern, segments, strict=True):
        if want.startswith("{"):
            if not got:
                return None
            params[want[1:-1]] = got
        elif want != got:
            return None
    return params
