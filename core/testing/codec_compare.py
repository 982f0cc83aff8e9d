"""What two answers have in common on a wire that loses some things. Knows no wire.

Nothing is forgiven but what `answer_losses.ANSWER_LOSSES` has and a codec declares. What no wire
need keep: how deltas were cut, ids that a reply minted itself, and "" for a call's
arguments, which means "{}".
"""

from __future__ import annotations

import json
from collections.abc import Set
from typing import Final

from msgspec.structs import replace

from tokenwire.core.events import TokenLogprob, Usage
from tokenwire.core.fold import Answer, Choice, Part

__all__ = ("normal",)

FLOOR: Final = -9999.0
"""Stands for every log probability below it, -inf included, on any wire."""


def normal(answer: Answer, losses: Set[str]) -> object:
    """A value that is equal for answers which are the same but for `losses`."""
    started = answer.started
    if started is not None:
        fingerprint = "" if "fingerprint" in losses else started.fingerprint
        tokens = (
            (0, 0)
            if "started_tokens" in losses
            else _prompt(started.prompt_tokens, started.cached_tokens, losses)
        )
        first = (fingerprint, tokens)
    else:
        first = None
    return (
        first,
        tuple(_choice(choice, losses) for choice in answer.choices),
        None if "usage" in losses else _usage(answer.usage, losses),
        answer.failed,
    )


def _prompt(prompt: int, cached: int, losses: Set[str]) -> tuple[int, int]:
    return prompt, 0 if "cached" in losses else cached


def _usage(usage: Usage | None, losses: Set[str]) -> Usage | None:
    if usage is None:
        return None
    lost = {f"{name}_tokens": 0 for name in ("cached", "cache_creation") if name in losses}
    if "cache_creation" in losses:
        lost["cache_creation_long_tokens"] = 0
    if "reasoning_tokens" in losses:
        lost["reasoning_tokens"] = 0
    return replace(usage, **lost)


def _choice(choice: Choice, losses: Set[str]) -> object:
    has_calls = any(part.kind == "tool_call" for part in choice.parts)
    drops_blanks = has_calls and "blank_text" in losses
    parts = [_part(part, losses) for part in choice.parts]
    if "empty_part" in losses:
        parts = [part for part in parts if part.text or part.kind == "tool_call"]
    if "part_order" in losses:
        parts = [
            *_joined(parts, "reasoning"),
            *_joined(parts, "text"),
            *(part for part in parts if part.kind == "tool_call"),
        ]
    if drops_blanks:
        parts = [
            replace(part, text="".join(part.text.split())) if part.kind == "text" else part
            for part in parts
        ]
        parts = [part for part in parts if part.kind != "text" or part.text]
    logprobs = tuple(
        _token(token, losses)
        for token in choice.logprobs or ()
        if not (drops_blanks and token.text.isspace())
    )
    return tuple(parts), logprobs, _reason(choice, losses)


def _joined(parts: list[Part], kind: str) -> list[Part]:
    text = "".join(part.text for part in parts if part.kind == kind)
    return [Part(kind, text)] if text else []  # type: ignore[arg-type]


def _part(part: Part, losses: Set[str]) -> Part:
    if part.kind != "tool_call":
        return part
    text = part.text
    if not part.custom:
        text = text or "{}"
        if "cut_arguments" in losses and not part.complete:
            text = ""
        if "argument_text" in losses and part.complete:
            text = json.dumps(json.loads(text), sort_keys=True)
    return replace(
        part,
        text=text,
        call_id=None if "call_id" in losses else part.call_id,
        complete="complete" in losses or part.complete,
    )


def _token(token: TokenLogprob, losses: Set[str]) -> TokenLogprob:
    return replace(
        token,
        id=0 if "logprob_ids" in losses else token.id,
        logprob=max(token.logprob, FLOOR),
        top=() if "logprob_top" in losses else tuple(_token(other, losses) for other in token.top),
    )


def _reason(choice: Choice, losses: Set[str]) -> tuple[str | None, str | None]:
    reason, matched = choice.reason, choice.matched
    if "matched" in losses:
        matched = None
        reason = "stop" if reason == "stop_sequence" else reason
    if reason == "context_length" and "context_length" in losses:
        reason = "length"
    return reason, matched
