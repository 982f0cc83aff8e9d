"""The list of models, as both client families read it."""

from __future__ import annotations

import json

import anthropic.types
import openai.types
import pytest

from tokenwire.core.call import GetModel, ListModels, ModelInfo
from tokenwire.core.errors import ErrorKind, RequestError
from tokenwire.core.testing.codec_kit import run_codec_kit
from tokenwire.core.wire import HttpRequest
from tokenwire.plugins.protocols.models.codec import Models, PagedGet, PagedList

ANTHROPIC = {"anthropic-version": "2023-06-01"}
INFOS = tuple(ModelInfo(name, 1_700_000_000, 4096) for name in ("a", "b/c", "d"))


def get(path="/v1/models", headers=None, query="", **params):
    return HttpRequest("GET", path, headers or {}, query=query, path_params=params)


def answer(request, result):
    codec = Models()
    reply = codec.answer(codec.decode(request), result)
    assert (reply.status, reply.content_type) == (200, "application/json")
    return json.loads(reply.body)


EXAMPLES = [
    (get(), ListModels()),
    (get(headers=ANTHROPIC), PagedList(limit=20)),
    (get(headers=ANTHROPIC, query="limit=2&after_id=b%2Fc"), PagedList(limit=2, after="b/c")),
    (get("/v1/models/a", model="a"), GetModel("a")),
    (get("/v1/models/a", ANTHROPIC, model="a"), PagedGet("a")),
    (get("/v1/models/b/c", owner="b", model="c"), GetModel("b/c")),
]


def test_conforms():
    run_codec_kit(Models(), EXAMPLES)


def test_openai_clients_read_the_list_and_an_entry():
    body = answer(get(), INFOS)
    assert body["object"] == "list"
    models = [openai.types.Model.model_validate(entry, strict=True) for entry in body["data"]]
    assert [model.id for model in models] == ["a", "b/c", "d"]
    entry = answer(get("/v1/models/a", model="a"), INFOS[0])
    assert openai.types.Model.model_validate(entry, strict=True).owned_by == "tokenwire"


def test_anthropic_clients_read_the_list_and_an_entry():
    body = answer(get(headers=ANTHROPIC), INFOS)
    models = [anthropic.types.ModelInfo.model_validate(entry) for entry in body["data"]]
    assert [model.id for model in models] == ["a", "b/c", "d"]
    assert body["data"][0]["created_at"] == "2023-11-14T22:13:20Z"
    entry = answer(get("/v1/models/a", ANTHROPIC, model="a"), INFOS[0])
    assert anthropic.types.ModelInfo.model_validate(entry).display_name == "a"


@pytest.mark.parametrize(
    ("query", "ids", "has_more"),
    [
        ("", ["a", "b/c", "d"], False),
        ("limit=2", ["a", "b/c"], True),
        ("limit=2&after_id=b/c", ["d"], False),
        ("limit=1&after_id=a", ["b/c"], True),
        ("after_id=d", [], False),
        ("limit=1&before_id=d", ["b/c"], True),
        ("before_id=b/c", ["a"], False),
    ],
)
def test_pages(query, ids, has_more):
    body = answer(get(headers=ANTHROPIC, query=query), INFOS)
    assert [entry["id"] for entry in body["data"]] == ids
    assert body["has_more"] is has_more
    assert body["first_id"] == (ids[0] if ids else None)
    assert body["last_id"] == (ids[-1] if ids else None)


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=1001", "limit=x", "limit=-1", "after_id=a&before_id=b", "a=1&" * 99]
)
def test_bad_pages_are_refused(query):
    with pytest.raises(RequestError):
        Models().decode(get(headers=ANTHROPIC, query=query))


def test_an_error_is_right_for_both_families():
    error = RequestError("no such model", kind=ErrorKind.MODEL_NOT_FOUND, param="model")
    reply = Models().encode_error(error, "req_1")
    assert reply.status == 404
    assert json.loads(reply.body) == {
        "type": "error",
        "error": {
            "type": "not_found_error",
            "message": "no such model",
            "param": "model",
            "code": "model_not_found",
        },
        "request_id": "req_1",
    }
