"""The token-ID interface's bytes: msgpack between machines, JSON for people."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from tokenwire.core.token_ids import TokenIds

__all__ = (
    "CONTENT_TYPE",
    "decode_json",
    "decode_msgpack",
    "decoder",
    "encode_json",
    "encode_msgpack",
)

CONTENT_TYPE = "application/vnd.tokenwire.v1+msgpack"

T = TypeVar("T")


def _to_bin(value: object) -> object:
    if isinstance(value, TokenIds):
        return value.to_le()
    raise NotImplementedError(f"{type(value).__name__} does not go on the wire")


def _to_list(value: object) -> object:
    if isinstance(value, TokenIds):
        return value.tolist()
    raise NotImplementedError(f"{type(value).__name__} does not go on the wire")


def _read(kind: type, value: object) -> object:
    if kind is not TokenIds:
        raise NotImplementedError(f"{kind.__name__} does not come off the wire")
    try:
        if isinstance(value, bytes):
            return TokenIds.from_le(value)
        if isinstance(value, list):
            return TokenIds(value)
    except (OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"token ids: {error}") from error
    raise ValueError(f"token ids: wanted bytes or a list, got {type(value).__name__}")


_MSGPACK = msgspec.msgpack.Encoder(enc_hook=_to_bin)
_JSON = msgspec.json.Encoder(enc_hook=_to_list)


def encode_msgpack(value: msgspec.Struct) -> bytes:
    return _MSGPACK.encode(value)


def encode_json(value: msgspec.Struct) -> bytes:
    return _JSON.encode(value)


def decode_msgpack(data: bytes, kind: type[T]) -> T:
    """Raises msgspec.DecodeError or msgspec.ValidationError."""
    return msgspec.msgpack.decode(data, type=kind, dec_hook=_read)


def decode_json(data: bytes, kind: type[T]) -> T:
    """Raises msgspec.DecodeError or msgspec.ValidationError."""
    return msgspec.json.decode(data, type=kind, dec_hook=_read)


def decoder(kind: Any) -> msgspec.msgpack.Decoder[Any]:
    """For whoever decodes many of one kind, which may be a union: it raises as `decode_msgpack`."""
    return msgspec.msgpack.Decoder(kind, dec_hook=_read)
