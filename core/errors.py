"""The whole exception tree: whose fault an error is, and what may be said of it. No wire format.

Two blames. A `RequestError` is the client's: its message names field and reason and is sent as it
stands. A `ServiceError` is ours or the engine's, but one the client must be told of (overloaded,
timeout, internal): its message is written for strangers and holds nothing of our insides. Anything
else that escapes is a bug: it is logged, and the client sees `ServiceError("internal")`.
"""

from __future__ import annotations

from enum import Enum

__all__ = (
    "CallError",
    "CodecStateError",
    "ConfigError",
    "ErrorKind",
    "PluginError",
    "ReplyError",
    "RequestError",
    "ServiceError",
    "StoreError",
    "TokenwireError",
)


class ErrorKind(Enum):
    """Every way a call can fail, with its HTTP status. Codecs map each kind to their own words."""

    # The client's.
    INVALID_REQUEST = ("invalid_request", 400)
    CONTEXT_LENGTH = ("context_length_exceeded", 400)
    AUTHENTICATION = ("authentication", 401)
    PERMISSION = ("permission", 403)
    NOT_FOUND = ("not_found", 404)
    MODEL_NOT_FOUND = ("model_not_found", 404)
    METHOD_NOT_ALLOWED = ("method_not_allowed", 405)
    TOO_LARGE = ("request_too_large", 413)
    UNSUPPORTED_MEDIA = ("unsupported_media_type", 415)
    RATE_LIMITED = ("rate_limited", 429)
    CLIENT_CLOSED = ("client_closed_request", 499)
    # Ours.
    INTERNAL = ("internal", 500)
    UNAVAILABLE = ("unavailable", 503)
    TIMEOUT = ("timeout", 504)
    OVERLOADED = ("overloaded", 529)

    def __init__(self, word: str, status: int) -> None:
        self.word = word
        self.status = status


class TokenwireError(Exception):
    """The root of everything we raise on purpose."""


class CallError(TokenwireError):
    """A call failed, and the client is told `message` under `kind`.

    `param` is the path of the field at fault ("messages[2].content"), `code` a finer word for
    programs ("unknown_model"), `retry_after` a number of seconds for the Retry-After header.
    """

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.param = param
        self.code = code
        self.retry_after = retry_after

    @property
    def status(self) -> int:
        return self.kind.status


class RequestError(CallError):
    """The client's fault: 4xx. The only exception that decoding a request may raise."""

    def __init__(
        self,
        message: str,
        *,
        kind: ErrorKind = ErrorKind.INVALID_REQUEST,
        param: str | None = None,
        code: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(kind, message, param=param, code=code, retry_after=retry_after)

    def renamed(self, param: str) -> RequestError:
        """The same, of a field that the client knows as `param`."""
        message = self.message
        if self.param is not None and message.startswith(f"{self.param}:"):
            message = param + message.removeprefix(self.param)
        return RequestError(
            message, kind=self.kind, param=param, code=self.code, retry_after=self.retry_after
        )


class ServiceError(CallError):
    """Ours or the engine's: 5xx. `message` is safe to show; causes are logged, never sent."""

    def __init__(
        self,
        kind: ErrorKind = ErrorKind.INTERNAL,
        message: str = "the server met an internal error",
        *,
        code: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(kind, message, code=code, retry_after=retry_after)


class CodecStateError(TokenwireError):
    """Events came in an order that `events.ORDER` does not allow: a bug in whoever sent them."""


class ReplyError(TokenwireError):
    """A server's bytes are no reply of the protocol that it was asked in. The message says why."""


class PluginError(TokenwireError):
    """A plugin broke its port's contract. The message names the plugin's owner."""


class ConfigError(TokenwireError):
    """A configuration cannot be used. The message names file, key, value and the nearest key."""


class StoreError(TokenwireError):
    """A store could not be reached or answered nonsense. Callers go on without it."""
