"""The wire of Anthropic Messages requests: the fields that are read. Knows none of our own values.

Whatever else an object holds is found by comparing its keys.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Raw, Struct

__all__ = (
    "Base64Source",
    "Body",
    "CacheControl",
    "ContentSource",
    "DocumentParam",
    "ImageParam",
    "Json",
    "Metadata",
    "OutputConfig",
    "OutputFormat",
    "RawBody",
    "RedactedParam",
    "SearchResultParam",
    "TextParam",
    "TextSource",
    "ThinkingParam",
    "ThinkingSettings",
    "ToolChoiceParam",
    "ToolParam",
    "ToolReferenceParam",
    "ToolResultParam",
    "ToolUseParam",
    "Turn",
    "UrlSource",
)

Json: TypeAlias = dict[str, object]
Share: TypeAlias = Annotated[float, Meta(ge=0, le=1)]


class CacheControl(Struct, frozen=True):
    """On a block, a tool, or the whole request."""

    type: str = "ephemeral"
    ttl: str | None = None


class Turn(Struct, frozen=True):
    """One of `messages`."""

    role: str
    content: str | list[Json]


class Metadata(Struct, frozen=True):
    user_id: str | None = None


class ThinkingSettings(Struct, frozen=True):
    type: str
    budget_tokens: int | None = None
    display: Literal["summarized", "omitted"] | None = None


class OutputFormat(Struct, frozen=True):
    type: str
    schema: Json


class OutputConfig(Struct, frozen=True):
    effort: str | None = None
    format: OutputFormat | None = None


class ToolChoiceParam(Struct, frozen=True):
    type: str
    name: str | None = None
    disable_parallel_tool_use: bool | None = None


class ToolParam(Struct, frozen=True):
    name: Annotated[str, Meta(min_length=1)]
    input_schema: Json
    type: str | None = None
    description: str | None = None
    strict: bool | None = None
    cache_control: CacheControl | None = None


class Body(Struct, frozen=True):
    """The body of both routes; counting needs no `max_tokens`."""

    model: Annotated[str, Meta(min_length=1)]
    messages: Annotated[list[Turn], Meta(min_length=1)]
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    system: str | list[Json] | None = None
    tools: list[Json] | None = None
    tool_choice: Json | None = None
    thinking: Json | None = None
    output_config: Json | None = None
    output_format: OutputFormat | None = None
    """Where structured outputs stood before `output_config`."""
    metadata: Json | None = None
    stop_sequences: list[Annotated[str, Meta(min_length=1)]] | None = None
    stream: bool | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Share | None = None
    top_k: Annotated[int, Meta(ge=0, le=2**31 - 1)] | None = None
    cache_control: CacheControl | None = None


class TextParam(Struct, frozen=True):
    text: str


class ImageParam(Struct, frozen=True):
    source: Json


class DocumentParam(Struct, frozen=True):
    source: Json
    title: str | None = None


class Base64Source(Struct, frozen=True):
    data: str
    media_type: str | None = None


class SearchResultParam(Struct, frozen=True):
    source: str
    title: str
    content: list[Json]


class ToolReferenceParam(Struct, frozen=True):
    tool_name: str


class TextSource(Struct, frozen=True):
    data: str
    media_type: str | None = None


class UrlSource(Struct, frozen=True):
    url: str


class ContentSource(Struct, frozen=True):
    content: str | list[Json]


class ThinkingParam(Struct, frozen=True):
    thinking: str
    signature: str | None = None


class RedactedParam(Struct, frozen=True):
    data: str


class ToolUseParam(Struct, frozen=True):
    id: str
    name: str
    input: object = None


class ToolResultParam(Struct, frozen=True):
    tool_use_id: str
    content: str | list[Json] | None = None
    is_error: bool | None = None


# What must be kept as it was written: a second look at the same body.


class RawBlock(Struct, frozen=True):
    input: Raw = Raw(b"")


class RawTurn(Struct, frozen=True):
    content: str | list[RawBlock]


class RawTool(Struct, frozen=True):
    input_schema: Raw = Raw(b"")


class RawFormat(Struct, frozen=True):
    schema: Raw = Raw(b"")


class RawConfig(Struct, frozen=True):
    format: RawFormat | None = None


class RawBody(Struct, frozen=True):
    messages: list[RawTurn]
    tools: list[RawTool] | None = None
    output_config: RawConfig | None = None
    output_format: RawFormat | None = None
