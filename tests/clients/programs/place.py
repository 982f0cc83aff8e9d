"""What the programs of this folder share: where the server is, and what they ask. test_programs.py
runs them, and compares the one JSON object that each prints."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping

__all__ = ("ASK", "KEY", "PARAMETERS", "STAGE", "URL", "error", "play", "show", "tide")

URL = os.environ["TOKENWIRE_URL"]
"""The server itself."""
STAGE = os.environ["TOKENWIRE_STAGE"]
"""The server behind a proxy that plays `done` once a tool has answered."""
KEY = "none"
ASK = "Tide at Brest and at Cork?"
PARAMETERS = {
    "type": "object",
    "properties": {"port": {"type": "string"}},
    "required": ["port"],
    "additionalProperties": False,
}


def play(name: str) -> dict[str, str]:
    """The header by which the mock plays that script; none, and it says what it always says."""
    return {"x-mock-script": name} if name else {}


def tide(port: str) -> str:
    """The tide at a port."""
    return f"3.1 m at {port}"


def error(call: Callable[[], object]) -> str:
    """The name of the error's class, and its HTTP status where it has one."""
    try:
        call()
    except Exception as found:
        status = getattr(found, "status_code", None)
        return " ".join([type(found).__name__] + ([str(status)] if status else []))
    return "no error"


def show(found: Mapping[str, object]) -> None:
    """Print what happened, as the last line."""
    print(json.dumps(found, ensure_ascii=True))
