"""Anthropic's word for each kind of failure: for Messages and the list of models. No envelope."""

from __future__ import annotations

from typing import Final

from tokenwire.core.errors import ErrorKind

__all__ = ("TYPES",)

TYPES: Final[dict[ErrorKind, str]] = {
    ErrorKind.INVALID_REQUEST: "invalid_request_error",
    ErrorKind.CONTEXT_LENGTH: "invalid_request_error",
    ErrorKind.AUTHENTICATION: "authentication_error",
    ErrorKind.PERMISSION: "permission_error",
    ErrorKind.NOT_FOUND: "not_found_error",
    ErrorKind.MODEL_NOT_FOUND: "not_found_error",
    ErrorKind.METHOD_NOT_ALLOWED: "invalid_request_error",
    ErrorKind.TOO_LARGE: "request_too_large",
    ErrorKind.UNSUPPORTED_MEDIA: "invalid_request_error",
    ErrorKind.RATE_LIMITED: "rate_limit_error",
    ErrorKind.CLIENT_CLOSED: "api_error",
    ErrorKind.INTERNAL: "api_error",
    ErrorKind.UNAVAILABLE: "api_error",
    ErrorKind.TIMEOUT: "timeout_error",
    ErrorKind.OVERLOADED: "overloaded_error",
}
