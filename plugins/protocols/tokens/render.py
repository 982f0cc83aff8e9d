"""`POST /render`: a request of any protocol to the prompt that its model would be asked.

The body is `{"protocol": NAME, "body": {...}}`, or the other protocol's body itself: whose it is
tell the query string (`?protocol=NAME`) or its fields.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final
from urllib.parse import parse_qs

from tokenwire.core.call import Query, QueryResult
from tokenwire.core.errors import RequestError
from tokenwire.core.field_rule import FieldRule
from tokenwire.core.json_body import read_object, to_struct
from tokenwire.core.prompt import Prompt, Span
from tokenwire.core.queries import ForeignRequest, Render, RenderedCall
from tokenwire.core.wire import HttpReply, HttpRequest, Route
from tokenwire.plugins.protocols.tokens.asking import QueryCodec, json_reply
from tokenwire.plugins.protocols.tokens.foreign import Wrapped, guess, unwrap

__all__ = ("RenderCodec",)

FIELDS: Final = (
    FieldRule("protocol", "used", "a codec's name; without it, the body is the request itself"),
    FieldRule("body", "used", "a request of that protocol"),
)


@final
class RenderCodec(QueryCodec):
    name = "render"
    routes = (
        Route(
            "POST",
            "/render",
            "A request of any protocol to text, ids and spans",
            query=("protocol",),
        ),
    )
    fields = FIELDS

    def decode(self, request: HttpRequest) -> Query:
        given = read_object(request.body)
        if "protocol" in given:
            return Render(unwrap(to_struct(given, Wrapped), request))
        named = _named(request.query) or guess(given, request.headers)
        return Render(ForeignRequest(named, request.body, request.headers))

    def answer(self, query: Query, result: QueryResult) -> HttpReply:
        if not isinstance(result, RenderedCall):
            raise TypeError(f"{query!r} is not answered by a {type(result).__name__}")
        each = [
            _prompt(prompt, spelled)
            for prompt, spelled in zip(result.prompts, result.spelled, strict=True)
        ]
        return json_reply(
            {"model": result.model, **each[0], "more": each[1:], "ignored": result.ignored}
        )


def _named(query: str) -> str | None:
    try:
        return parse_qs(query, max_num_fields=64).get("protocol", [None])[-1]
    except ValueError:
        raise RequestError("the query has too many fields: there is protocol") from None


def _prompt(prompt: Prompt, spelled: Sequence[str]) -> dict[str, object]:
    return {
        "text": prompt.text,
        "ids": prompt.ids.tolist(),
        "token_strs": spelled,
        "spans": [_span(span) for span in prompt.spans],
        "phase": prompt.phase,
        "fingerprint": prompt.fingerprint,
    }


def _span(span: Span) -> dict[str, object]:
    """Ids [start, end); `turn` and `part` where the text is a client's."""
    said: dict[str, object] = {"start": span.start, "end": span.end, "source": span.source}
    if span.turn >= 0:
        said |= {"turn": span.turn, "part": span.part}
    return said
