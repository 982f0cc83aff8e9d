"""Errors in Anthropic's envelope, with the sentences that clients look for."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from tokenwire.core.errors import CallError, ErrorKind
from tokenwire.core.wire import HttpReply, retry_after
from tokenwire.plugins.protocols._shared.error_types import TYPES
from tokenwire.plugins.protocols.messages.reply_schema import ErrorBody, ErrorDetail

__all__ = ("encode_error", "envelope")

_json: Final = msgspec.json.Encoder()
_NUMBER: Final = re.compile(r"\d+")
TOO_LONG: Final = "prompt is too long"


def envelope(kind: ErrorKind, message: str, request_id: str) -> bytes:
    """The body of an error reply, and the data of a stream's error event."""
    if kind is ErrorKind.CONTEXT_LENGTH:
        message = _too_long(message)
    return _json.encode(ErrorBody(ErrorDetail(TYPES[kind], message), request_id))


def encode_error(error: CallError, request_id: str) -> HttpReply:
    message = error.message
    is_overflow = error.kind is ErrorKind.CONTEXT_LENGTH
    if error.param and error.param not in message and not is_overflow:
        message = f"{error.param}: {message}"
    body = envelope(error.kind, message, request_id)
    return HttpReply(error.status, "application/json", body, retry_after(error))


def _too_long(message: str) -> str:
    """Clients find "prompt is too long: N tokens > M maximum" and then shorten the conversation."""
    if message.startswith(TOO_LONG):
        return message
    numbers = sorted((int(number) for number in _NUMBER.findall(message)), reverse=True)
    if len(numbers) == 2 and numbers[0] > numbers[1]:
        return f"{TOO_LONG}: {numbers[0]} tokens > {numbers[1]} maximum"
    return f"{TOO_LONG}: {message}"
