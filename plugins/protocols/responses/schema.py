"""The fields of a Responses request that are read, with their ranges. No meaning, no output.

Every optional field takes null for "not set". Ranges are those of OpenAI's API reference.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

from msgspec import Meta, Struct

__all__ = (
    "COUNT_FIELDS",
    "IGNORED_FIELDS",
    "REQUEST_FIELDS",
    "CountRequest",
    "Json",
    "Reasoning",
    "Request",
    "StreamOptions",
    "TextConfig",
    "TextFormat",
)

Json: TypeAlias = dict[str, object]
Word: TypeAlias = Annotated[str, Meta(min_length=1)]
Effort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
Summary: TypeAlias = Literal["auto", "concise", "detailed"]
Count: TypeAlias = Annotated[int, Meta(ge=1, le=2**31 - 1)]


class Reasoning(Struct, frozen=True):
    effort: Effort | None = None
    summary: Summary | Literal["none"] | None = None
    generate_summary: Summary | None = None


class TextFormat(Struct, frozen=True):
    type: Literal["text", "json_object", "json_schema"]
    name: str | None = None
    schema: Json | bool | None = None
    strict: bool | None = None


class TextConfig(Struct, frozen=True):
    format: Json | None = None
    verbosity: Literal["low", "medium", "high"] | None = None


class StreamOptions(Struct, frozen=True):
    include_obfuscation: bool | None = None


class CountRequest(Struct, frozen=True):
    """POST /v1/responses/input_tokens: what makes the prompt."""

    model: Word
    input: str | list[Json] | None = None
    instructions: str | None = None
    previous_response_id: Word | None = None
    conversation: Word | Json | None = None
    truncation: Literal["auto", "disabled"] | None = None
    reasoning: Json | None = None
    text: Json | None = None
    tools: list[Json] | None = None
    tool_choice: str | Json | None = None
    parallel_tool_calls: bool | None = None


class Request(CountRequest, frozen=True):
    """POST /v1/responses."""

    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(gt=0, le=1)] | None = None
    max_output_tokens: Count | None = None
    max_tool_calls: Count | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None
    include: list[str] | None = None
    stream: bool | None = None
    stream_options: Json | None = None
    store: bool | None = None
    background: bool | None = None
    metadata: Json | None = None
    service_tier: Word | None = None
    prompt: object = None
    prompt_cache_key: str | None = None
    safety_identifier: str | None = None
    user: str | None = None


IGNORED_FIELDS: Final = frozenset(
    {
        "access_programs",
        "background_options",
        "context_management",
        "image",
        "moderation",
        "personality",
        "prompt_cache_options",
        "prompt_cache_retention",
    }
)
"""Known to the protocol, and of no use here."""
REQUEST_FIELDS: Final = frozenset(Request.__struct_fields__) | IGNORED_FIELDS
COUNT_FIELDS: Final = REQUEST_FIELDS
