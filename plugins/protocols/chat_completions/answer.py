"""The fields of a reply that the client reads: chunks, bodies, errors. No meaning."""

from __future__ import annotations

from msgspec import Struct

__all__ = (
    "AnswerBody",
    "Chunk",
    "Delta",
    "LogprobsField",
    "Message",
    "ToolCallDelta",
    "UsageField",
)


class ErrorField(Struct, frozen=True):
    message: str
    type: str
    param: str | None = None
    code: str | None = None


class FunctionDelta(Struct, frozen=True):
    name: str | None = None
    arguments: str | None = None


class CustomDelta(Struct, frozen=True):
    name: str | None = None
    input: str | None = None


class ToolCallDelta(Struct, frozen=True):
    """In a chunk with `index`, in a message without; id and name only with a call's first."""

    index: int = 0
    id: str | None = None
    type: str | None = None
    function: FunctionDelta | None = None
    custom: CustomDelta | None = None


class Delta(Struct, frozen=True):
    role: str | None = None
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[ToolCallDelta] | None = None


class Message(Delta, frozen=True):
    """A whole message has the fields of a delta."""


class TopLogprob(Struct, frozen=True):
    token: str
    logprob: float
    bytes: list[int] | None = None


class TokenEntry(TopLogprob, frozen=True):
    top_logprobs: list[TopLogprob] = []


class LogprobsField(Struct, frozen=True):
    content: list[TokenEntry] | None = None


class PromptDetails(Struct, frozen=True):
    cached_tokens: int = 0


class CompletionDetails(Struct, frozen=True):
    reasoning_tokens: int = 0


class UsageField(Struct, frozen=True):
    prompt_tokens: int
    completion_tokens: int
    prompt_tokens_details: PromptDetails = PromptDetails()
    completion_tokens_details: CompletionDetails = CompletionDetails()


class ChunkChoice(Struct, frozen=True):
    index: int
    delta: Delta
    finish_reason: str | None = None
    stop_reason: str | None = None
    logprobs: LogprobsField | None = None


class Chunk(Struct, frozen=True):
    choices: list[ChunkChoice] = []
    system_fingerprint: str | None = None
    usage: UsageField | None = None
    error: ErrorField | None = None


class BodyChoice(Struct, frozen=True):
    index: int
    message: Message
    finish_reason: str
    stop_reason: str | None = None
    logprobs: LogprobsField | None = None


class AnswerBody(Struct, frozen=True):
    choices: list[BodyChoice] = []
    system_fingerprint: str | None = None
    usage: UsageField | None = None
    error: ErrorField | None = None
