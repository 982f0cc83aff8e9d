"""`POST /tokenize`: text, or the prompt of a request, to ids. The shapes are vLLM's."""

from __future__ import annotations

from typing import Final, final

import msgspec
from msgspec import Struct

from tokenwire.core.call import Query, QueryResult
from tokenwire.core.errors import RequestError
from tokenwire.core.field_rule import FieldRule
from tokenwire.core.json_body import read_object, to_struct
from tokenwire.core.queries import ForeignRequest, Tokenize, Tokenized
from tokenwire.core.wire import HttpReply, HttpRequest, Route
from tokenwire.plugins.protocols.tokens.asking import QueryCodec, json_reply, refuse_unknown
from tokenwire.plugins.protocols.tokens.foreign import Wrapped, unwrap

__all__ = ("TokenizeCodec",)

_encode: Final = msgspec.json.Encoder().encode


class Body(Struct, frozen=True):
    """One of prompt, messages and request. Beside `messages` stand Chat Completions' fields."""

    model: str | None = None
    prompt: str | None = None
    messages: list[dict[str, object]] | None = None
    request: dict[str, object] | None = None
    add_special_tokens: bool | None = None
    parse_special: bool | None = None
    return_token_strs: bool | None = None


OWN: Final = frozenset(("add_special_tokens", "parse_special", "return_token_strs"))
TEXT_ONLY: Final = ("add_special_tokens", "parse_special")

FIELDS: Final = (
    FieldRule("model", "used", "a model's name or alias; not needed where only one is served"),
    FieldRule("prompt", "used", "the text"),
    FieldRule("messages", "used", "with the other fields of Chat Completions: its prompt's ids"),
    FieldRule("request", "used", "protocol and body: the ids of that request's prompt"),
    FieldRule("add_special_tokens", "used", "false: a text's ids without BOS and EOS"),
    FieldRule(
        "parse_special",
        "used",
        "whether special tokens in a text are tokens; else as parse.prompt_specials says",
    ),
    FieldRule("return_token_strs", "used", "true: each id's text too"),
)


@final
class TokenizeCodec(QueryCodec):
    name = "tokenize"
    routes = (Route("POST", "/tokenize", "Text or messages to token ids", body=Body),)
    fields = FIELDS

    def decode(self, request: HttpRequest) -> Query:
        given = read_object(request.body)
        if given.get("messages") is None:
            refuse_unknown(given, Body)
        body = to_struct(given, Body)
        asked = [
            name for name in ("prompt", "messages", "request") if getattr(body, name) is not None
        ]
        if len(asked) != 1:
            got = " and ".join(asked) or "none of them"
            raise RequestError(
                f"wanted one of prompt, messages and request, got {got}", param="prompt"
            )
        spell = bool(body.return_token_strs)
        if body.prompt is not None:
            return Tokenize(
                model=body.model or "",
                text=body.prompt,
                add_special=body.add_special_tokens is not False,
                parse_special=body.parse_special,
                spell=spell,
            )
        for name in TEXT_ONLY:
            if given.get(name):
                raise RequestError(f"{name} is of a prompt; a template decides here", param=name)
        if body.messages is not None:
            chat = {key: value for key, value in given.items() if key not in OWN}
            return Tokenize(request=ForeignRequest("chat_completions", _encode(chat)), spell=spell)
        wrapped = to_struct(body.request, Wrapped, at="request")
        return Tokenize(request=unwrap(wrapped, request), spell=spell)

    def answer(self, query: Query, result: QueryResult) -> HttpReply:
        if not isinstance(query, Tokenize) or not isinstance(result, Tokenized):
            raise TypeError(f"{query!r} is not answered by a {type(result).__name__}")
        return json_reply(
            {
                "count": len(result.ids),
                "max_model_len": result.context_length,
                "tokens": result.ids.tolist(),
                "token_strs": result.spelled if query.spell else None,
            }
        )
