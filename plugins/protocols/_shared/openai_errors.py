"""OpenAI's error envelope for every kind of failure, of all its protocols. Knows no request."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct

from tokenwire.core.errors import CallError, ErrorKind
from tokenwire.core.wire import HttpReply, retry_after

__all__ = ("ErrorBody", "error_body", "error_reply", "kind_of")

_encode: Final = msgspec.json.Encoder().encode


class ErrorField(Struct, frozen=True):
    message: str
    type: str
    param: str | None
    code: str | None


class ErrorBody(Struct, frozen=True):
    """What every error of OpenAI's protocols is."""

    error: ErrorField


# kind -> (type, code): the words that OpenAI's clients look for.
WORDS: Final[dict[ErrorKind, tuple[str, str | None]]] = {
    ErrorKind.INVALID_REQUEST: ("invalid_request_error", None),
    ErrorKind.CONTEXT_LENGTH: ("invalid_request_error", "context_length_exceeded"),
    ErrorKind.AUTHENTICATION: ("authentication_error", "invalid_api_key"),
    ErrorKind.PERMISSION: ("permission_error", "permission_denied"),
    ErrorKind.NOT_FOUND: ("invalid_request_error", "not_found"),
    ErrorKind.MODEL_NOT_FOUND: ("invalid_request_error", "model_not_found"),
    ErrorKind.METHOD_NOT_ALLOWED: ("invalid_request_error", "method_not_allowed"),
    ErrorKind.TOO_LARGE: ("invalid_request_error", "request_too_large"),
    ErrorKind.UNSUPPORTED_MEDIA: ("invalid_request_error", "unsupported_media_type"),
    ErrorKind.RATE_LIMITED: ("rate_limit_error", "rate_limit_exceeded"),
    ErrorKind.CLIENT_CLOSED: ("invalid_request_error", "client_closed_request"),
    ErrorKind.INTERNAL: ("api_error", "internal_error"),
    ErrorKind.UNAVAILABLE: ("api_error", "unavailable"),
    ErrorKind.TIMEOUT: ("api_error", "timeout"),
    ErrorKind.OVERLOADED: ("api_error", "overloaded"),
}

PARAMS: Final = {ErrorKind.CONTEXT_LENGTH: "messages", ErrorKind.MODEL_NOT_FOUND: "model"}

# Why: OpenAI's servers say 503 where Anthropic's say 529.
STATUSES: Final = {ErrorKind.OVERLOADED: 503}

KINDS: Final = {words: kind for kind, words in WORDS.items()}


def error_body(
    kind: ErrorKind, message: str, *, param: str | None = None, code: str | None = None
) -> bytes:
    """`code` finer than the kind's own is kept, except where clients look for the kind's."""
    type_, own = WORDS[kind]
    if kind is ErrorKind.CONTEXT_LENGTH or code is None:
        code = own
    error = {
        "message": message,
        "type": type_,
        "param": param or PARAMS.get(kind),
        "code": code,
    }
    return _encode({"error": error})


def error_reply(error: CallError, request_id: str) -> HttpReply:
    body = error_body(error.kind, error.message, param=error.param, code=error.code)
    status = STATUSES.get(error.kind, error.status)
    return HttpReply(status, "application/json", body, retry_after(error))


def kind_of(type_: str, code: str | None) -> ErrorKind:
    """The kind that an error object stands for, as far as its words tell."""
    kind = KINDS.get((type_, code)) or KINDS.get((type_, None))
    return kind or ErrorKind.INTERNAL
