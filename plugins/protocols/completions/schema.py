"""The fields of a Completions request that are read, with their ranges. No meaning, no output.

Every optional field takes null for "not set". Ranges are those of the OpenAI API reference, and of
vLLM's for the fields it added (top_k, min_p, repetition_penalty, min_tokens, stop_token_ids, ...).
"""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

from msgspec import Meta, Struct

__all__ = ("MOST_CHOICES", "REQUEST_FIELDS", "STREAM_FIELDS", "Request", "StreamOptions")

Json: TypeAlias = dict[str, object]
Count: TypeAlias = Annotated[int, Meta(ge=1, le=2**31 - 1)]
TokenId: TypeAlias = Annotated[int, Meta(ge=0, le=2**32 - 1)]
Penalty: TypeAlias = Annotated[float, Meta(ge=-2, le=2)]
Word: TypeAlias = Annotated[str, Meta(min_length=1)]

MOST_CHOICES: Final = 1024
"""Prompts times candidates of one request."""


class StreamOptions(Struct, frozen=True):
    include_usage: bool | None = None
    continuous_usage_stats: bool | None = None


class Request(Struct, frozen=True):
    model: Word
    prompt: str | list[object]
    """Text, texts, ids, or lists of ids."""
    suffix: str | None = None
    add_special_tokens: bool | None = None
    # Sampling.
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(gt=0, le=1)] | None = None
    top_k: Annotated[int, Meta(ge=-1, le=2**31 - 1)] | None = None
    min_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    frequency_penalty: Penalty | None = None
    presence_penalty: Penalty | None = None
    repetition_penalty: Annotated[float, Meta(gt=0, le=1000)] | None = None
    seed: Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | None = None
    logit_bias: dict[str, Annotated[float, Meta(ge=-100, le=100)]] | None = None
    allowed_token_ids: list[TokenId] | None = None
    # Stopping.
    max_tokens: Annotated[int, Meta(ge=0, le=2**31 - 1)] | None = None
    min_tokens: Annotated[int, Meta(ge=0, le=2**31 - 1)] | None = None
    stop: str | Annotated[list[str], Meta(max_length=64)] | None = None
    stop_token_ids: list[TokenId] | None = None
    ignore_eos: bool | None = None
    include_stop_str_in_output: bool | None = None
    # Output.
    n: Annotated[int, Meta(ge=1, le=128)] | None = None
    best_of: Annotated[int, Meta(ge=1, le=128)] | None = None
    logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None
    echo: bool | None = None
    stream: bool | None = None
    stream_options: dict[str, object] | None = None
    # The answer's shape.
    response_format: Json | None = None
    structured_outputs: Json | None = None
    guided_json: Json | str | None = None
    guided_regex: Word | None = None
    guided_choice: Annotated[list[str], Meta(min_length=1)] | None = None
    guided_grammar: Word | None = None
    regex: Word | None = None
    ebnf: Word | None = None
    # Who asks, and what may help.
    user: str | None = None
    safety_identifier: str | None = None
    session_id: str | None = None
    prompt_cache_key: str | None = None
    cache_salt: Word | None = None
    priority: Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)] | None = None


REQUEST_FIELDS: Final = frozenset(Request.__struct_fields__)
STREAM_FIELDS: Final = frozenset(StreamOptions.__struct_fields__)
