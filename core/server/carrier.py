"""An exchange together with the request it answers, as one server carries it. Knows no routes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping

from msgspec import Struct

from tokenwire.core.exchange import Exchange

__all__ = ("Carrier", "Head", "join_headers")

Headers = tuple[tuple[str, str], ...]


class Head(Struct, frozen=True):
    """A request's first lines. Header names are lower case; `path` is decoded, `query` is not."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]


class Carrier(Exchange):
    """What each server adapter is: the way back, and the body on its way in."""

    extra: Headers = ()
    """Headers that every reply of this exchange gets (CORS)."""
    status: int = 0
    """Of the reply's head, once it is sent."""

    @abstractmethod
    async def body(self, limit: int, length: int | None) -> bytes:
        """The whole body, once. `length` is what the client declared (already within `limit`).

        Raises RequestError for more than `limit` bytes or a broken body, ClientGone.
        """


def join_headers(items: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Headers by lower-case name. A repeated one is a list (RFC 9110 5.3), also of cookies."""
    pairs = list(items)
    joined = dict(pairs)
    if len(joined) == len(pairs):
        return joined
    joined.clear()
    for name, value in pairs:
        if name in joined:
            joined[name] += ("; " if name == "cookie" else ", ") + value
        else:
            joined[name] = value
    return joined
