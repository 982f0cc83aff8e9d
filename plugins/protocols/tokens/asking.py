"""What the codecs of queries have in common: strict bodies, OpenAI's error body. Knows no query.

These routes are Tokenwire's own, so a field that they do not know is refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar

import msgspec

from tokenwire.core.errors import CallError, RequestError
from tokenwire.core.json_body import read_object, to_struct
from tokenwire.core.ports.codec import Codec, Reply
from tokenwire.core.wire import HttpReply, Stamp
from tokenwire.plugins.protocols._shared.openai_errors import ErrorBody, error_reply

__all__ = ("QueryCodec", "json_reply", "read", "refuse_unknown")

T = TypeVar("T", bound=msgspec.Struct)

_encode: Final = msgspec.json.Encoder().encode


class QueryCodec(Codec):
    """A codec whose decode gives queries only."""

    error_body = ErrorBody
    task = None

    def reply(self, call: object, stamp: Stamp) -> Reply:
        raise NotImplementedError(f"{self.name} gives queries only")

    def encode_error(self, error: CallError, request_id: str) -> HttpReply:
        return error_reply(error, request_id)


def read(body: bytes, kind: type[T]) -> T:
    """The body as `kind`; raises RequestError for fields that `kind` does not have."""
    given = read_object(body)
    refuse_unknown(given, kind)
    return to_struct(given, kind)


def refuse_unknown(given: Mapping[str, object], kind: type[msgspec.Struct], at: str = "") -> None:
    """`at`: where `given` stands in the body."""
    known = kind.__struct_fields__
    for name in given:
        if name not in known:
            raise RequestError(
                f"{name[:64]!r} is no field of {at or 'this route'}; there is {', '.join(known)}",
                param=f"{at}.{name[:64]}" if at else name[:64],
                code="unknown_field",
            )


def json_reply(body: object) -> HttpReply:
    return HttpReply(200, "application/json", _encode(body))
