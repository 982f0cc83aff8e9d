"""A file of published failures beside the checkout, as requests. It is no part of this project."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.cases.stage import CHAT, FORMATS, MESSAGES, RESPONSES, to_messages, to_responses

__all__ = ("FILE", "asked", "bodies", "cases", "paths")

ROOT = Path(__file__).parents[2]
FILE = (
    Path(os.environ.get("TOKENWIRE_SHARED") or ROOT.parent / "shared") / "cases/codec_cases.jsonl"
)
PROTOCOLS = {
    "openai-chat": (CHAT,),
    "anthropic-messages": (MESSAGES,),
    "openai-responses": (RESPONSES,),
    "all": (CHAT, MESSAGES, RESPONSES),
}


def cases() -> Iterator[Any]:
    """Those that are bodies of our protocols, in dialects that we read; none without the file."""
    # Why bytes: texts of cases hold line breaks that only str knows.
    for line in FILE.read_bytes().splitlines() if FILE.is_file() else ():
        case = json.loads(line)
        is_ours = case["protocol"] in PROTOCOLS and _format(case) in (None, *FORMATS)
        if is_ours and case.get("expect") and any(bodies(case)):
            yield case


def paths(case: Any) -> tuple[str, ...]:
    return PROTOCOLS[case["protocol"]]


def bodies(case: Any) -> Iterator[dict[str, Any]]:
    given: Mapping[str, Any] = case["input"]
    for body in given.get("variants", [given]):
        if ("messages" in body or "input" in body) and "template" not in given:
            yield body


def asked(path: str, body: dict[str, Any], case: Any) -> dict[str, Any] | None:
    """The body for a protocol; None where it is one of another."""
    is_messages = "stop_sequences" in body or case["protocol"] == "anthropic-messages"
    filled = json.dumps(body).replace("<9000 tokens>", "x" * 9000)
    body = json.loads(filled) | {"model": _format(case) or "hermes"}
    if "input" in body:
        return body if path == RESPONSES else None
    if "messages" not in body:
        return None
    if path == CHAT:
        return None if is_messages else body
    if path == RESPONSES:
        return None if is_messages else to_responses(body)
    return body if is_messages else to_messages(body)


def _format(case: Any) -> str | None:
    output = case.get("model_output") or {}
    found = {script.get("format") for script in output.get("choices", [output])}
    return found.pop()
