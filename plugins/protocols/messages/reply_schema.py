"""The wire of Anthropic Messages replies: what we write, and what a client reads back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from msgspec import UNSET, Raw, Struct, UnsetType

__all__ = (
    "Block",
    "BlockDelta",
    "BlockStart",
    "BlockStop",
    "CacheCreation",
    "ErrorBody",
    "ErrorDetail",
    "InputJsonDelta",
    "Message",
    "MessageDelta",
    "MessageStart",
    "MessageStop",
    "OutputDetails",
    "Ping",
    "RedactedBlock",
    "SignatureDelta",
    "StopDelta",
    "StopReason",
    "StreamEvent",
    "TextBlock",
    "TextDelta",
    "ThinkingBlock",
    "ThinkingDelta",
    "TokenCount",
    "ToolUseBlock",
    "Usage",
)

StopReason: TypeAlias = Literal[
    "end_turn",
    "max_tokens",
    "stop_sequence",
    "tool_use",
    "pause_turn",
    "refusal",
    "model_context_window_exceeded",
]


class TextBlock(Struct, frozen=True, tag="text"):
    text: str


class ThinkingBlock(Struct, frozen=True, tag="thinking"):
    thinking: str
    signature: str


class RedactedBlock(Struct, frozen=True, tag="redacted_thinking"):
    data: str


class ToolUseBlock(Struct, frozen=True, tag="tool_use"):
    id: str
    name: str
    input: Raw


Block: TypeAlias = TextBlock | ThinkingBlock | RedactedBlock | ToolUseBlock


class OutputDetails(Struct, frozen=True):
    thinking_tokens: int


class CacheCreation(Struct, frozen=True):
    """The same tokens by how long they are to be kept."""

    ephemeral_5m_input_tokens: int
    ephemeral_1h_input_tokens: int


class Usage(Struct, frozen=True):
    """`input_tokens` leaves out what was read from the cache or written to it."""

    input_tokens: int
    cache_creation_input_tokens: int
    cache_read_input_tokens: int
    output_tokens: int
    cache_creation: CacheCreation | None = None
    output_tokens_details: OutputDetails | UnsetType = UNSET


class Message(Struct, frozen=True, tag="message"):
    id: str
    role: Literal["assistant"]
    model: str
    content: Sequence[Block]
    stop_reason: StopReason | None
    stop_sequence: str | None
    usage: Usage


class MessageStart(Struct, frozen=True, tag="message_start"):
    message: Message


class BlockStart(Struct, frozen=True, tag="content_block_start"):
    index: int
    content_block: Block


class TextDelta(Struct, frozen=True, tag="text_delta"):
    text: str


class ThinkingDelta(Struct, frozen=True, tag="thinking_delta"):
    thinking: str


class SignatureDelta(Struct, frozen=True, tag="signature_delta"):
    signature: str


class InputJsonDelta(Struct, frozen=True, tag="input_json_delta"):
    partial_json: str


class BlockDelta(Struct, frozen=True, tag="content_block_delta"):
    index: int
    delta: TextDelta | ThinkingDelta | SignatureDelta | InputJsonDelta


class BlockStop(Struct, frozen=True, tag="content_block_stop"):
    index: int


class StopDelta(Struct, frozen=True):
    stop_reason: StopReason
    stop_sequence: str | None


class MessageDelta(Struct, frozen=True, tag="message_delta"):
    """Its usage is the total, which replaces that of message_start."""

    delta: StopDelta
    usage: Usage


class MessageStop(Struct, frozen=True, tag="message_stop"):
    pass


class Ping(Struct, frozen=True, tag="ping"):
    pass


class ErrorDetail(Struct, frozen=True):
    type: str
    message: str


class ErrorBody(Struct, frozen=True, tag="error"):
    error: ErrorDetail
    request_id: str | None = None


StreamEvent: TypeAlias = (
    MessageStart
    | BlockStart
    | BlockDelta
    | BlockStop
    | MessageDelta
    | MessageStop
    | Ping
    | ErrorBody
)


class TokenCount(Struct, frozen=True):
    input_tokens: int
