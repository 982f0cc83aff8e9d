"""Whole replies as files; tests/goldens.py says how they are written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from tests.goldens import check, part, written
from tokenwire.core.call import Call
from tokenwire.core.errors import ErrorKind
from tokenwire.core.events import (
    Event,
    Failed,
    Finished,
    PartDelta,
    PartStart,
    Usage,
)
from tokenwire.core.signing import Keyring
from tokenwire.core.wire import HttpRequest
from tokenwire.plugins.protocols.responses.codec import Responses

FOLDER = Path(__file__).with_name("golden")
CODEC = Responses(Keyring([b"k" * 16]))
END = Usage(9, 5, 4, reasoning_tokens=2)


CASES: Final[dict[str, tuple[dict[str, Any], tuple[Event, ...]]]] = {
    "text": ({}, (*part("text", "Low ", "tide.\n"), Finished(0, "stop"), END)),
    "reasoning": (
        {"include": ["reasoning.encrypted_content"]},
        (*part("reasoning", "2+2"), *part("text", "4"), Finished(0, "length"), END),
    ),
    "summary": (
        {"reasoning": {"effort": "low", "summary": "auto"}},
        (*part("reasoning", "2+2"), *part("text", "4"), Finished(0, "stop"), END),
    ),
    "calls": (
        {"tools": [{"type": "web_search"}, {"type": "custom", "name": "patch"}]},
        (
            *part("tool_call", '{"port": ', '"Brest"}', name="get_tide"),
            *part("tool_call", "*** Be", "gin", name="patch", custom=True),
            Finished(0, "tool_calls"),
            END,
        ),
    ),
    "failed": (
        {},
        (PartStart(0, "text"), PartDelta(0, "par"), Failed(ErrorKind.OVERLOADED, "try later")),
    ),
}


def said(name: str, *, stream: bool) -> bytes:
    fields, events = CASES[name]
    body = json.dumps({"model": "m", "input": "x", "stream": stream, **fields}).encode()
    asked = CODEC.decode(HttpRequest("POST", "/v1/responses", body=body))
    assert isinstance(asked, Call)
    return written(CODEC, asked, events)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("stream", [True, False])
def test_golden(name: str, *, stream: bool) -> None:
    if name == "failed" and not stream:
        return  # A unary reply is never given a failure.
    check(FOLDER / f"{name}.{'sse' if stream else 'json'}", said(name, stream=stream))
