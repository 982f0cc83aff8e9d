"""Requests about what is stored: which query each is; or a RequestError, and nothing else."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenwire.core.errors import RequestError
from tokenwire.core.routes import RouteTable
from tokenwire.core.signing import Keyring
from tokenwire.core.stored import (
    AddItems,
    CancelStored,
    CreateConversation,
    DeleteItem,
    DeleteStored,
    GetItem,
    GetStored,
    ListItems,
    StoredItem,
    UpdateConversation,
)
from tokenwire.core.wire import HttpRequest
from tokenwire.plugins.protocols.responses.codec import Responses

CODEC = Responses(Keyring([b"k" * 16]))
TABLE = RouteTable([CODEC])
ONE, TALK = "/v1/responses/resp_1", "/v1/conversations/conv_1"
TALKS = "/v1/conversations"
ITEM = {"role": "user", "content": "x"}
KEPT = StoredItem(
    "msg_",
    b'{"role":"user","content":[{"type":"input_text","text":"x"}],"type":"message",'
    b'"status":"completed"}',
)


def asked(method: str, path: str, query: str = "", body: Any = None) -> Any:
    match = TABLE.match(method, path)
    assert match.codec is CODEC
    data = b"" if body is None else json.dumps(body).encode()
    return CODEC.decode(HttpRequest(method, path, {}, query, data, match.params))


@pytest.mark.parametrize(
    "item",
    [
        {},
        {"type": 7},
        {"type": "function_call"},
        {"type": "message", "role": "nobody", "content": "x"},
        {"type": "message", "role": "user", "content": 5},
        {"type": "reasoning", "content": 7},
        {"type": "reasoning", "encrypted_content": 7},
        {"type": "item_reference", "id": "msg_1"},
        {"type": "item_reference"},
    ],
)
def test_what_would_spoil_a_conversation_is_not_added_to_it(item: Any) -> None:
    for path in (TALKS, f"{TALK}/items"):
        with pytest.raises(RequestError, match="items"):
            asked("POST", path, body={"items": [ITEM, item]})


@pytest.mark.parametrize(
    ("method", "path", "query", "body", "wanted"),
    [
        ("GET", ONE, "", None, GetStored("response", "resp_1")),
        (
            "GET",
            ONE,
            "stream=true&starting_after=7",
            None,
            GetStored("response", "resp_1", stream=True, after=7),
        ),
        ("DELETE", ONE, "", None, DeleteStored("response", "resp_1")),
        ("POST", f"{ONE}/cancel", "", None, CancelStored("resp_1")),
        ("GET", f"{ONE}/input_items", "", None, ListItems("response", "resp_1")),
        (
            "GET",
            f"{ONE}/input_items",
            "limit=5&order=asc&after=a",
            None,
            ListItems("response", "resp_1", 5, "a", True),
        ),
        ("POST", "/v1/conversations", "", None, CreateConversation(b"{}")),
        (
            "POST",
            "/v1/conversations",
            "",
            {"items": [ITEM], "metadata": {"a": "b"}},
            CreateConversation(b'{"a":"b"}', (KEPT,)),
        ),
        ("GET", TALK, "", None, GetStored("conversation", "conv_1")),
        ("POST", TALK, "", {"metadata": None}, UpdateConversation("conv_1", b"{}")),
        ("DELETE", TALK, "", None, DeleteStored("conversation", "conv_1")),
        ("GET", f"{TALK}/items", "", None, ListItems("conversation", "conv_1")),
        ("POST", f"{TALK}/items", "", {"items": [ITEM]}, AddItems("conv_1", (KEPT,))),
        ("GET", f"{TALK}/items/msg_1", "", None, GetItem("conv_1", "msg_1")),
        ("DELETE", f"{TALK}/items/msg_1", "", None, DeleteItem("conv_1", "msg_1")),
    ],
)
def test_which_query_it_is(method: str, path: str, query: str, body: Any, wanted: Any) -> None:
    assert asked(method, path, query, body) == wanted


@pytest.mark.parametrize(
    ("path", "query"),
    [
        (ONE, "starting_after=1"),
        (ONE, "stream=true&starting_after=-1"),
        (f"{ONE}/input_items", "limit=0"),
        (f"{ONE}/input_items", "limit=x"),
        (f"{ONE}/input_items", "order=up"),
    ],
)
def test_what_cannot_be_meant_is_refused(path: str, query: str) -> None:
    with pytest.raises(RequestError) as refused:
        asked("GET", path, query)
    assert refused.value.param in ("starting_after", "limit", "order")


@given(
    st.sampled_from([route for route in CODEC.routes if route.path != "/v1/responses"]),
    st.text(max_size=20),
    st.one_of(
        st.binary(max_size=20),
        st.fixed_dictionaries(
            {},
            optional={
                "items": st.one_of(
                    st.none(), st.lists(st.dictionaries(st.text(max_size=4), st.integers()))
                ),
                "metadata": st.dictionaries(st.text(max_size=3), st.one_of(st.text(), st.none())),
            },
        ).map(lambda body: json.dumps(body).encode()),
    ),
)
def test_whatever_comes_it_is_a_query_or_refused(route: Any, query: str, body: bytes) -> None:
    params = {"response_id": "r", "conversation_id": "c"}
    if "{item_id}" in route.path:
        params["item_id"] = "i"
    with suppress(RequestError):
        CODEC.decode(HttpRequest(route.method, route.path, {}, query, body, params))
