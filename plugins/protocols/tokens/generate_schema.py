"""The fields of a /v1/generate request, with their ranges: a job in ids, in plain JSON."""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

from msgspec import Meta, Struct

__all__ = ("FIELDS_OF", "Request", "Sampling", "Stopping")

Count: TypeAlias = Annotated[int, Meta(ge=1, le=2**31 - 1)]
TokenId: TypeAlias = Annotated[int, Meta(ge=0, le=2**32 - 1)]
Ids: TypeAlias = Annotated[list[TokenId], Meta(min_length=1)]
Penalty: TypeAlias = Annotated[float, Meta(ge=-2, le=2)]
Word: TypeAlias = Annotated[str, Meta(min_length=1)]


class Sampling(Struct, frozen=True):
    temperature: Annotated[float, Meta(ge=0, le=100)] | None = None
    top_p: Annotated[float, Meta(gt=0, le=1)] | None = None
    top_k: Annotated[int, Meta(ge=0, le=2**31 - 1)] | None = None
    min_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    frequency_penalty: Penalty | None = None
    presence_penalty: Penalty | None = None
    repetition_penalty: Annotated[float, Meta(gt=0, le=1000)] | None = None
    seed: Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | None = None
    logit_bias: dict[str, Annotated[float, Meta(ge=-100, le=100)]] | None = None
    allowed_ids: list[TokenId] | None = None


class Stopping(Struct, frozen=True):
    max_tokens: Count | None = None
    min_tokens: Annotated[int, Meta(ge=0, le=2**31 - 1)] | None = None
    stop_ids: list[TokenId] | None = None
    sequences: list[Ids] | None = None
    ignore_eos: bool | None = None


class Request(Struct, frozen=True):
    prompt: Ids
    model: str | None = None
    n: Annotated[int, Meta(ge=1, le=128)] | None = None
    sampling: dict[str, object] | None = None
    stopping: dict[str, object] | None = None
    logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None
    stream: bool | None = None
    priority: Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)] | None = None
    deadline_ms: Count | None = None
    expected_tokens: Count | None = None
    cache_salt: Word | None = None
    user: str | None = None
    session: str | None = None


FIELDS_OF: Final = {
    kind: frozenset(kind.__struct_fields__) for kind in (Request, Sampling, Stopping)
}
