"""What of an answer a protocol's replies cannot say, by name. Knows no wire.

`ANSWER_LOSSES` is the table of what a codec may declare in `Codec.losses`: the conformance kit
forgives what a codec declares and nothing else. (`call_losses` has the same of questions.)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ("ANSWER_LOSSES",)

ANSWER_LOSSES: Final[Mapping[str, str]] = {
    "argument_text": "arguments keep their value, not their spelling, in unary bodies",
    "blank_text": "whitespace beside calls is dropped",
    "cache_creation": "usage has no tokens written to a cache",
    "cached": "usage has no tokens read from a cache",
    "call_id": "a call's id may be another than the dialect wrote",
    "cancelled": "a cancelled choice ends with another reason",
    "choices": "there is one choice",
    "complete": "a call does not say whether it is whole",
    "context_length": "context_length ends with the reason length",
    "cut_arguments": "a call that was cut off keeps its whole arguments only, in unary bodies",
    "custom": "there are no free-form calls",
    "empty_part": "parts without text are dropped",
    "error_kind": "a failure has a message, not its kind",
    "fingerprint": "the render's fingerprint is not sent, or not whole",
    "logprob_ids": "logprobs have no token ids",
    "logprob_top": "of alternatives only their text is said, one of each spelling",
    "logprobs": "there are no logprobs",
    "logprobs_outside_text": "logprobs are of text parts only",
    "matched": "the stop string that matched is not said",
    "part_order": "parts of one kind are joined, and come in one order of kinds",
    "reasoning": "there is no reasoning",
    "reasoning_tokens": "usage does not count reasoning",
    "started_tokens": "prompt tokens are not said before the end",
    "tool_call": "there are no calls",
    "usage": "there is no usage",
}
