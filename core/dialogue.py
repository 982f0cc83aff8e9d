"""What a model is asked: turns of typed parts, tools, formats. Knows no wire names and no tokens.

Unknown fields of a protocol are kept in `extra` maps (decoded JSON), so that a codec can write back
what it read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

__all__ = (
    "Audio",
    "ClientPart",
    "Dialogue",
    "Document",
    "Grammar",
    "Image",
    "Opaque",
    "Part",
    "Reasoning",
    "ReasoningSettings",
    "ResponseFormat",
    "Role",
    "Text",
    "ToolCall",
    "ToolChoice",
    "ToolResult",
    "ToolSpec",
    "Turn",
)

Role: TypeAlias = Literal["system", "developer", "user", "assistant", "tool"]
Extra: TypeAlias = Mapping[str, object]
NO_EXTRA: Extra = {}


class Text(Struct, frozen=True, tag="text"):
    """Plain text."""

    text: str
    extra: Extra = NO_EXTRA


class Media(Struct, frozen=True):
    """What image, audio and document have in common: exactly one of `url` and `data` is set."""

    url: str | None = None
    data: bytes | None = None
    media_type: str | None = None
    name: str | None = None
    extra: Extra = NO_EXTRA


class Image(Media, frozen=True, tag="image"):
    """A picture; `detail` is the client's wish for its resolution."""

    detail: str | None = None


class Audio(Media, frozen=True, tag="audio"):
    """A recording."""


class Document(Media, frozen=True, tag="document"):
    """A file to read; `text` where the client sent it as plain text."""

    text: str | None = None
    title: str | None = None


class Reasoning(Struct, frozen=True, tag="reasoning"):
    """Thinking of an earlier assistant turn. `redacted` holds a sealed block instead of text."""

    text: str
    signature: str | None = None
    redacted: str | None = None
    extra: Extra = NO_EXTRA


class ToolCall(Struct, frozen=True, tag="tool_call"):
    """A call the assistant made. `arguments` is the JSON text exactly as it was written."""

    id: str
    name: str
    arguments: str
    custom: bool = False
    """True for free-form tools, whose `arguments` is plain text and not JSON."""
    extra: Extra = NO_EXTRA


class Opaque(Struct, frozen=True, tag="opaque"):
    """A block of a kind we do not know or do not run, kept whole so that it can be written back."""

    kind: str
    value: Extra


ClientPart: TypeAlias = Text | Image | Audio | Document | Opaque


class ToolResult(Struct, frozen=True, tag="tool_result"):
    """What a tool answered to the call with id `call_id`."""

    call_id: str
    parts: tuple[ClientPart, ...]
    is_error: bool = False
    name: str | None = None
    extra: Extra = NO_EXTRA


Part: TypeAlias = Text | Image | Audio | Document | Reasoning | ToolCall | ToolResult | Opaque


class Turn(Struct, frozen=True):
    """One turn. A `tool` turn holds tool results only; an `assistant` turn may hold calls."""

    role: Role
    parts: tuple[Part, ...]
    name: str | None = None
    extra: Extra = NO_EXTRA


class Grammar(Struct, frozen=True):
    """What free text must match, in Lark's or a regular expression's own language."""

    syntax: Literal["lark", "regex"]
    text: str


class ToolSpec(Struct, frozen=True):
    """A tool that the model may call. `parameters` is JSON Schema as JSON text, as it was sent."""

    name: str
    description: str | None = None
    parameters: str | None = None
    strict: bool | None = None
    custom: bool = False
    extra: Extra = NO_EXTRA
    grammar: Grammar | None = None
    """Of a custom tool's input."""


class ToolChoice(Struct, frozen=True):
    """Which tools may or must be called. `names` only for `named` (one) and `allowed`."""

    mode: Literal["auto", "none", "required", "named", "allowed"] = "auto"
    names: tuple[str, ...] = ()
    required: bool = False
    """For `allowed`: whether one of `names` must be called."""
    parallel: bool = True


class ResponseFormat(Struct, frozen=True):
    """What shape the visible answer must have. `text` is the schema, pattern or grammar itself."""

    kind: Literal[
        "text", "json_object", "json_schema", "regex", "grammar", "choice", "structural_tag"
    ] = "text"
    text: str | None = None
    name: str | None = None
    strict: bool | None = None
    choices: tuple[str, ...] = ()


class ReasoningSettings(Struct, frozen=True):
    """Whether and how long to think. Unset is the model's habit; `budget` is in tokens."""

    mode: Literal["on", "off", "adaptive"] | None = None
    effort: str | None = None
    budget: int | None = None


class Dialogue(Struct, frozen=True):
    """The whole question, whichever protocol asked it."""

    turns: tuple[Turn, ...]
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: ToolChoice = ToolChoice()
    response_format: ResponseFormat = ResponseFormat()
    reasoning: ReasoningSettings = ReasoningSettings()
    template_args: Extra = NO_EXTRA
    """What the client passes straight to the chat template (`chat_template_kwargs`)."""
    continue_final: bool = False
    """The last assistant turn is a beginning that the model goes on with."""
    extra: Extra = NO_EXTRA
    generation_prompt: bool = True
    """False: the prompt ends with the last turn, and the model begins the next one itself."""
