"""`POST /detokenize`: ids to text. The shapes are vLLM's."""

from __future__ import annotations

from typing import Annotated, Final, final

from msgspec import Meta, Struct

from tokenwire.core.call import Query, QueryResult
from tokenwire.core.field_rule import FieldRule
from tokenwire.core.queries import Detokenize, Detokenized
from tokenwire.core.wire import HttpReply, HttpRequest, Route
from tokenwire.plugins.protocols.tokens.asking import QueryCodec, json_reply, read

__all__ = ("DetokenizeCodec",)


class Body(Struct, frozen=True):
    tokens: list[Annotated[int, Meta(ge=0, le=2**32 - 1)]]
    model: str | None = None


FIELDS: Final = (
    FieldRule("model", "used", "a model's name or alias; not needed where only one is served"),
    FieldRule("tokens", "used", "special tokens give their spelling; half a character is left out"),
)


@final
class DetokenizeCodec(QueryCodec):
    name = "detokenize"
    routes = (Route("POST", "/detokenize", "Token ids to text", body=Body),)
    fields = FIELDS

    def decode(self, request: HttpRequest) -> Query:
        body = read(request.body, Body)
        return Detokenize(tuple(body.tokens), body.model or "")

    def answer(self, query: Query, result: QueryResult) -> HttpReply:
        if not isinstance(result, Detokenized):
            raise TypeError(f"{query!r} is not answered by a {type(result).__name__}")
        return json_reply({"prompt": result.text})
