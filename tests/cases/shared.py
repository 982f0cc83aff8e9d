"""A file of published failures beside the checkout, as requests. It is no part of this project."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.cases.convert import to_completions, to_messages, to_responses
from tests.cases.stage import CHAT, COMPLETIONS, MESSAGES, RESPONSES

__all__ = ("FILE", "asked", "bodies", "every", "is_played", "paths")

ROOT = Path(__file__).parents[2]
FILE = (
    Path(os.environ.get("TOKENWIRE_SHARED") or ROOT.parent / "shared") / "cases/codec_cases.jsonl"
)
PROTOCOLS = {
    "openai-chat": (CHAT,),
    "openai-completions": (COMPLETIONS,),
    "anthropic-messages": (MESSAGES,),
    "openai-responses": (RESPONSES,),
    "all": (CHAT, MESSAGES, RESPONSES, COMPLETIONS),
    "internal": (CHAT, MESSAGES, RESPONSES),
}
RAW_FORMATS = (None, "plain", "sentencepiece")
"""Dialects whose output is the same text to a protocol that knows no dialects."""


def every() -> Iterator[Any]:
    """All cases of the file; none without it."""
    # Why bytes: texts of cases hold line breaks that only str knows.
    for line in FILE.read_bytes().splitlines() if FILE.is_file() else ():
        yield json.loads(line)


def is_played(case: Any) -> bool:
    """Whether it is requests and outputs; the others are about headers, bytes, templates."""
    return any(bodies(case))


def paths(case: Any) -> tuple[str, ...]:
    if any("prompt" in body for body in bodies(case)) and case["protocol"] == "openai-chat":
        return (COMPLETIONS,)
    return PROTOCOLS[case["protocol"]]


def bodies(case: Any) -> Iterator[dict[str, Any]]:
    given: Mapping[str, Any] = case["input"]
    for body in given.get("variants", [given]):
        is_request = isinstance(body, dict) and {"messages", "input", "prompt"} & set(body)
        if is_request and "template" not in given:
            yield body


def asked(path: str, body: dict[str, Any], case: Any) -> dict[str, Any] | None:
    """The body for a protocol; None where it is one of another."""
    is_messages = "stop_sequences" in body or case["protocol"] == "anthropic-messages"
    filled = json.dumps(body).replace("<9000 tokens>", "x" * 9000)
    body = json.loads(filled) | {"model": _format(case) or "hermes"}
    for key, own in (("input", RESPONSES), ("prompt", COMPLETIONS)):
        if key in body:
            return body if path == own else None
    if is_messages or path == MESSAGES:
        return None if path != MESSAGES else body if is_messages else to_messages(body)
    if path == RESPONSES:
        return to_responses(body)
    if path == COMPLETIONS:
        return to_completions(body) if _format(case) in RAW_FORMATS else None
    return body


def _format(case: Any) -> str | None:
    output = case.get("model_output") or {}
    found = {script.get("format") for script in output.get("choices", [output])}
    return found.pop()
