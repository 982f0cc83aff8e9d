"""The bodies of /v1/embeddings, with their ranges: what is asked, and the answer."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

from msgspec import Meta, Struct

__all__ = (
    "KNOWN",
    "MOST_INPUTS",
    "AnswerBody",
    "EmbeddingField",
    "Input",
    "Request",
    "TokenId",
    "UsageField",
)

MOST_INPUTS: Final = 2048
"""OpenAI's own limit."""

Size: TypeAlias = Annotated[int, Meta(ge=1, le=2**31 - 1)]
TokenId: TypeAlias = Annotated[int, Meta(ge=0, le=2**32 - 1)]
Input: TypeAlias = str | list[str | TokenId | list[TokenId]]
"""A text, texts, a text's ids, or several texts' ids: a list has items of one kind."""


class Request(Struct, frozen=True):
    input: Input
    model: str | None = None
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: Size | None = None
    truncate_prompt_tokens: Annotated[int, Meta(ge=-1, le=2**31 - 1)] | None = None
    add_special_tokens: bool | None = None
    priority: Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)] | None = None
    user: str | None = None


KNOWN: Final = frozenset(Request.__struct_fields__)


class EmbeddingField(Struct, frozen=True):
    """Base64: of the numbers as float32, least significant byte first."""

    object: Literal["embedding"]
    index: int
    embedding: tuple[float, ...] | str


class UsageField(Struct, frozen=True):
    prompt_tokens: int
    total_tokens: int


class AnswerBody(Struct, frozen=True):
    object: Literal["list"]
    data: tuple[EmbeddingField, ...]
    model: str
    usage: UsageField
