"""The error envelope: every kind, the sentences clients look for, the headers they read."""

from __future__ import annotations

import msgspec
import pytest

from tokenwire.core.errors import ErrorKind, RequestError, ServiceError
from tokenwire.plugins.protocols._shared.error_types import TYPES

EXPECTED = {
    ErrorKind.INVALID_REQUEST: (400, "invalid_request_error"),
    ErrorKind.CONTEXT_LENGTH: (400, "invalid_request_error"),
    ErrorKind.AUTHENTICATION: (401, "authentication_error"),
    ErrorKind.PERMISSION: (403, "permission_error"),
    ErrorKind.NOT_FOUND: (404, "not_found_error"),
    ErrorKind.MODEL_NOT_FOUND: (404, "not_found_error"),
    ErrorKind.METHOD_NOT_ALLOWED: (405, "invalid_request_error"),
    ErrorKind.TOO_LARGE: (413, "request_too_large"),
    ErrorKind.UNSUPPORTED_MEDIA: (415, "invalid_request_error"),
    ErrorKind.RATE_LIMITED: (429, "rate_limit_error"),
    ErrorKind.CLIENT_CLOSED: (499, "api_error"),
    ErrorKind.INTERNAL: (500, "api_error"),
    ErrorKind.UNAVAILABLE: (503, "api_error"),
    ErrorKind.TIMEOUT: (504, "timeout_error"),
    ErrorKind.OVERLOADED: (529, "overloaded_error"),
}


def test_every_kind_is_mapped():
    assert set(TYPES) == set(EXPECTED) == set(ErrorKind)


@pytest.mark.parametrize("kind", ErrorKind)
def test_kinds(codec, kind):
    reply = codec.encode_error(ServiceError(kind, "what went wrong"), "req_7")
    status, word = EXPECTED[kind]
    assert reply.status == status
    assert reply.content_type == "application/json"
    assert reply.headers == {}
    body = msgspec.json.decode(reply.body)
    assert body["type"] == "error"
    assert body["error"]["type"] == word
    assert "what went wrong" in body["error"]["message"]
    assert body["request_id"] == "req_7"


@pytest.mark.parametrize(("seconds", "header"), [(0, "1"), (0.2, "1"), (1, "1"), (2.5, "3")])
def test_retry_after(codec, seconds, header):
    error = ServiceError(ErrorKind.OVERLOADED, "busy", retry_after=seconds)
    assert codec.encode_error(error, "r").headers["retry-after"] == header


def message(codec, error):
    return msgspec.json.decode(codec.encode_error(error, "r").body)["error"]["message"]


def test_the_field_at_fault_is_named_once(codec):
    assert message(codec, RequestError("is odd", param="top_k")) == "top_k: is odd"
    assert message(codec, RequestError("top_k is odd", param="top_k")) == "top_k is odd"


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("prompt is too long: 9 tokens > 8 maximum", "prompt is too long: 9 tokens > 8 maximum"),
        ("9001 tokens do not fit 8192", "prompt is too long: 9001 tokens > 8192 maximum"),
        ("8192 hold no 9001", "prompt is too long: 9001 tokens > 8192 maximum"),
        ("it does not fit", "prompt is too long: it does not fit"),
    ],
)
def test_an_overflow_says_what_clients_look_for(codec, given, sent):
    error = RequestError(given, kind=ErrorKind.CONTEXT_LENGTH, param="messages")
    assert message(codec, error) == sent
