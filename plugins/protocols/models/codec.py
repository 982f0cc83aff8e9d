"""The list of models and one model's entry, in two shapes. Knows no generation.

A request with the header `anthropic-version` gets Anthropic's shape (a page; ISO dates), any other
gets OpenAI's. Errors have one body that is right for both: Anthropic's clients read its `type`s and
`request_id`, OpenAI's its `message`, `param` and `code`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final, final
from urllib.parse import parse_qs

import msgspec

from tokenwire.core.call import GetModel, ListModels, ModelInfo, Query, QueryResult
from tokenwire.core.errors import CallError, RequestError
from tokenwire.core.ports.codec import Codec, Reply
from tokenwire.core.wire import HttpReply, HttpRequest, Route, Stamp, retry_after
from tokenwire.plugins.protocols._shared.error_types import TYPES

__all__ = ("Models", "PagedGet", "PagedList")

LARGEST_PAGE: Final = 1000
DEFAULT_PAGE: Final = 20

_encode: Final = msgspec.json.Encoder().encode


class PagedList(ListModels, frozen=True, tag="paged_list_models"):
    """A list that an Anthropic client asked for."""


class PagedGet(GetModel, frozen=True, tag="paged_get_model"):
    """An entry that an Anthropic client asked for."""


@final
class Models(Codec):
    name = "models"
    routes = (
        Route("GET", "/v1/models", "List the models", query=("limit", "after_id", "before_id")),
        Route("GET", "/v1/models/{model}", "One model"),
        Route("GET", "/v1/models/{owner}/{model}", "One model whose name holds a slash"),
    )

    def decode(self, request: HttpRequest) -> Query:
        is_paged = "anthropic-version" in request.headers
        name = _name(request)
        if name is not None:
            return PagedGet(name) if is_paged else GetModel(name)
        if not is_paged:
            return ListModels()
        return _page(request.query)

    def reply(self, call: object, stamp: Stamp) -> Reply:
        raise NotImplementedError("models gives queries only")

    def answer(self, query: Query, result: QueryResult) -> HttpReply:
        match query, result:
            case (PagedGet(), ModelInfo()):
                body = _anthropic(result)
            case (GetModel(), ModelInfo()):
                body = _openai(result)
            case (PagedList(), tuple()):
                body = _paged(query, result)
            case (ListModels(), tuple()):
                body = {"object": "list", "data": [_openai(model) for model in result]}
            case _:
                raise TypeError(f"{query!r} is not answered by a {type(result).__name__}")
        return HttpReply(200, "application/json", _encode(body))

    def encode_error(self, error: CallError, request_id: str) -> HttpReply:
        body = {
            "type": "error",
            "error": {
                "type": TYPES[error.kind],
                "message": error.message,
                "param": error.param,
                "code": error.code or error.kind.word,
            },
            "request_id": request_id,
        }
        return HttpReply(error.status, "application/json", _encode(body), retry_after(error))


def _name(request: HttpRequest) -> str | None:
    model = request.path_params.get("model")
    if model is None:
        return None
    owner = request.path_params.get("owner")
    return model if owner is None else f"{owner}/{model}"


def _page(query: str) -> PagedList:
    try:
        given = {key: values[-1] for key, values in parse_qs(query, max_num_fields=64).items()}
    except ValueError:
        raise RequestError("the query has too many fields: limit, after_id, before_id") from None
    after, before = given.get("after_id"), given.get("before_id")
    if after is not None and before is not None:
        raise RequestError("after_id and before_id exclude each other", param="before_id")
    limit = given.get("limit", str(DEFAULT_PAGE))
    if not (limit.isascii() and limit.isdigit() and len(limit) <= 4):
        raise RequestError(f"limit must be 1 to {LARGEST_PAGE}, not {limit[:64]!r}", param="limit")
    if not 1 <= int(limit) <= LARGEST_PAGE:
        raise RequestError(f"limit must be 1 to {LARGEST_PAGE}, not {limit}", param="limit")
    return PagedList(limit=int(limit), after=after, before=before)


def _paged(query: ListModels, models: tuple[ModelInfo, ...]) -> dict[str, object]:
    """`before` takes the last models before it. A cursor that names no model starts at the edge."""
    names = [model.name for model in models]
    limit = query.limit or DEFAULT_PAGE
    if query.before is not None:
        end = names.index(query.before) if query.before in names else len(names)
        start = max(0, end - limit)
        has_more = start > 0
    else:
        start = names.index(query.after) + 1 if query.after in names else 0
        end = min(len(names), start + limit)
        has_more = end < len(names)
    page = models[start:end]
    return {
        "data": [_anthropic(model) for model in page],
        "has_more": has_more,
        "first_id": page[0].name if page else None,
        "last_id": page[-1].name if page else None,
    }


def _openai(model: ModelInfo) -> dict[str, object]:
    """`max_model_len` is what other servers of open models add."""
    return {
        "id": model.name,
        "object": "model",
        "created": model.created,
        "owned_by": model.owner,
        "max_model_len": model.context_length,
    }


def _anthropic(model: ModelInfo) -> dict[str, object]:
    created = datetime.fromtimestamp(model.created, tz=UTC)
    return {
        "type": "model",
        "id": model.name,
        "display_name": model.name,
        "created_at": created.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "lifecycle": "active",
        "max_input_tokens": model.context_length,
    }
