"""A request of another protocol inside one of ours. Knows no protocol's fields but their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct

from tokenwire.core.errors import RequestError
from tokenwire.core.queries import ForeignRequest
from tokenwire.core.wire import HttpRequest

__all__ = ("Wrapped", "guess", "unwrap")

_encode: Final = msgspec.json.Encoder().encode


class Wrapped(Struct, frozen=True, forbid_unknown_fields=True):
    """A protocol's name and a body of it."""

    protocol: str
    body: dict[str, object]


def unwrap(wrapped: Wrapped, request: HttpRequest) -> ForeignRequest:
    """Headers go with it: some protocols say there what they want."""
    return ForeignRequest(wrapped.protocol, _encode(wrapped.body), request.headers)


def guess(given: Mapping[str, object], headers: Mapping[str, str]) -> str:
    """The protocol that a bare body is of. Raises RequestError where nothing tells."""
    if "messages" in given:
        return "messages" if "anthropic-version" in headers else "chat_completions"
    if "prompt" in given:
        return "completions"
    if "input" in given:
        return "responses"
    raise RequestError(
        "wanted protocol and body, or a body that tells its protocol by messages, prompt or input",
        param="protocol",
        code="missing_field",
    )
