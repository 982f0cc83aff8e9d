"""OpenAI's Embeddings: texts or ids to vectors. Knows no model; its answer is never a stream."""

from __future__ import annotations

import struct
from base64 import b64encode
from collections.abc import Sequence
from typing import ClassVar, Final, Literal, final

import msgspec

from tokenwire.core.call import Embed, Embedded, Hints, Identity, Query, QueryResult, RawPrompt
from tokenwire.core.errors import CallError, RequestError
from tokenwire.core.field_rule import FieldRule
from tokenwire.core.ignored import Ignored
from tokenwire.core.json_body import read_object, to_struct
from tokenwire.core.ports.codec import Codec, CodecClient, Reply
from tokenwire.core.wire import HttpReply, HttpRequest, Route, Stamp
from tokenwire.plugins.protocols._shared.openai_errors import ErrorBody, error_reply
from tokenwire.plugins.protocols.embeddings.client import EmbeddingsClient
from tokenwire.plugins.protocols.embeddings.schema import (
    KNOWN,
    MOST_INPUTS,
    AnswerBody,
    EmbeddingField,
    Request,
    UsageField,
)

__all__ = ("EmbeddingsCodec", "Packed")

FIELDS: Final = (
    FieldRule("model", "used", "a model's name or alias; not needed where only one is served"),
    FieldRule(
        "input",
        "used",
        f"a text or its ids, or a list of up to {MOST_INPUTS} of one kind; none may be empty",
    ),
    FieldRule("encoding_format", "used", "float, or base64 of float32, little-endian"),
    FieldRule(
        "dimensions", "used", "keeps so many of the first numbers, made to length 1; at most all"
    ),
    FieldRule(
        "truncate_prompt_tokens",
        "used",
        "of a longer input only so many of its first tokens; -1: as many as the model takes",
    ),
    FieldRule("add_special_tokens", "used", "false: a text's ids alone, nothing around them"),
    FieldRule("priority", "used", "a larger number is more urgent"),
    FieldRule("user", "used", "the user; it never decides the tenant"),
)

_encode: Final = msgspec.json.Encoder().encode


class Packed(Embed, frozen=True, tag="packed_embed"):
    """An `Embed` whose vectors are wanted in base64."""


@final
class EmbeddingsCodec(Codec):
    name = "embeddings"
    routes = (Route("POST", "/v1/embeddings", "Texts to vectors", body=Request, reply=AnswerBody),)
    error_body = ErrorBody
    fields = FIELDS
    task: ClassVar[Literal["generate", "embed"] | None] = "embed"
    words: ClassVar = {
        "first_tokens": "truncate_prompt_tokens",
        "inputs": "input",
        "prompt": "input",
    }

    def decode(self, request: HttpRequest) -> Query:
        given = read_object(request.body)
        body = to_struct(given, Request)
        ignored = Ignored()
        ignored.unknown(given, KNOWN, "")
        if body.truncate_prompt_tokens == 0:
            raise RequestError(
                "truncate_prompt_tokens must be 1 or more, or -1, not 0",
                param="truncate_prompt_tokens",
            )
        kind = Packed if body.encoding_format == "base64" else Embed
        return kind(
            model=body.model or "",
            inputs=_inputs(body.input, begin=body.add_special_tokens is not False),
            dimensions=body.dimensions,
            first_tokens=body.truncate_prompt_tokens,
            identity=Identity(user=body.user),
            hints=Hints(priority=body.priority or 0),
            ignored=ignored.paths,
            unknown=ignored.unknown_paths,
        )

    def reply(self, call: object, stamp: Stamp) -> Reply:
        raise NotImplementedError(f"{self.name} gives queries only")

    def answer(self, query: Query, result: QueryResult) -> HttpReply:
        if not isinstance(query, Embed) or not isinstance(result, Embedded):
            raise TypeError(f"{query!r} is not answered by a {type(result).__name__}")
        is_packed = isinstance(query, Packed)
        data = tuple(
            EmbeddingField("embedding", index, _packed(vector) if is_packed else vector)
            for index, vector in enumerate(result.vectors)
        )
        tokens = result.prompt_tokens
        model = query.model or result.model
        body = AnswerBody("list", data, model, UsageField(tokens, tokens))
        return HttpReply(200, "application/json", _encode(body))

    def encode_error(self, error: CallError, request_id: str) -> HttpReply:
        return error_reply(error, request_id)

    def client(self) -> CodecClient:
        return EmbeddingsClient()


def _packed(vector: Sequence[float]) -> str:
    return b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def _inputs(given: str | list[str | int | list[int]], *, begin: bool) -> tuple[RawPrompt, ...]:
    """Raises RequestError for nothing, for too many, and for a mixture."""
    if isinstance(given, str):
        return (_text(given, "input", begin=begin),)
    if not given:
        raise _empty("input")
    kinds = {type(each) for each in given}
    if len(kinds) > 1:
        raise RequestError(
            "input must be a text, a list of texts, a list of ids, or a list of lists of ids, not"
            " a mixture",
            param="input",
        )
    if kinds == {int}:
        return (RawPrompt(ids=tuple(each for each in given if isinstance(each, int))),)
    if len(given) > MOST_INPUTS:
        raise RequestError(
            f"input may have up to {MOST_INPUTS} entries, got {len(given)}", param="input"
        )
    return tuple(
        _text(each, f"input[{k}]", begin=begin)
        if isinstance(each, str)
        else _ids(each, f"input[{k}]")
        for k, each in enumerate(given)
    )


def _text(given: str, param: str, *, begin: bool) -> RawPrompt:
    if not given:
        raise _empty(param)
    return RawPrompt(given, begin=begin)


def _ids(given: int | list[int], param: str) -> RawPrompt:
    if isinstance(given, int) or not given:
        raise _empty(param)
    return RawPrompt(ids=tuple(given))


def _empty(param: str) -> RequestError:
    return RequestError(f"{param} must not be empty", param=param)
