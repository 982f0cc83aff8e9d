"""The replies of Completions as structs: what a client reads. Fields that it does not need are not
here."""

from __future__ import annotations

from msgspec import Struct

__all__ = ("AnswerBody", "Choice", "LogprobsField", "UsageField")


class ErrorField(Struct, frozen=True):
    message: str
    type: str = ""
    code: str | None = None


class LogprobsField(Struct, frozen=True):
    tokens: list[str] = []
    token_logprobs: list[float | None] = []
    text_offset: list[int] = []


class Choice(Struct, frozen=True):
    index: int
    text: str = ""
    logprobs: LogprobsField | None = None
    finish_reason: str | None = None
    stop_reason: str | None = None


class CachedField(Struct, frozen=True):
    cached_tokens: int = 0


class ReasoningField(Struct, frozen=True):
    reasoning_tokens: int = 0


class UsageField(Struct, frozen=True):
    prompt_tokens: int
    completion_tokens: int
    prompt_tokens_details: CachedField = CachedField()
    completion_tokens_details: ReasoningField = ReasoningField()


class AnswerBody(Struct, frozen=True):
    """A whole body, a chunk, or an error."""

    choices: list[Choice] = []
    usage: UsageField | None = None
    system_fingerprint: str | None = None
    error: ErrorField | None = None
