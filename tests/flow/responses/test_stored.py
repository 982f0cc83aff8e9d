"""Responses that are stored: found, gone on from, referred to, deleted, and whose they are."""

from __future__ import annotations

from typing import Any

import pytest

from tests.flow.responses.asking import MODELS, PATH, ask, events, get, post, prompt
from tests.flow.wired import factory, module
from tokenwire.core.call import Identity
from tokenwire.core.config import Config
from tokenwire.core.host import Host
from tokenwire.core.ports.guard import Guard
from tokenwire.core.testing.client import LocalClient
from tokenwire.core.wire import HttpRequest


class Tenants(Guard):
    """Whoever the header says."""

    async def admit(self, request: HttpRequest, identity: Identity) -> Identity:
        return Identity(tenant=request.headers["x-tenant"])


def test_a_response_is_stored_and_deleted(client: LocalClient) -> None:
    made = ask(client, metadata={"a": "b"})
    path = f"{PATH}/{made['id']}"
    assert get(client, path).json() == made
    listed: Any = get(client, f"{path}/input_items").json()
    assert [item["content"][0]["text"] for item in listed["data"]] == ["hi"]
    assert get(client, path, method="DELETE").json() == {
        "id": made["id"],
        "object": "response",
        "deleted": True,
    }
    gone = get(client, path)
    told: Any = gone.json()
    assert (gone.status, told["error"]["code"]) == (404, "not_found")
    assert get(client, path, method="DELETE").status == 404


def test_a_streamed_response_is_stored_before_its_end_is_sent(client: LocalClient) -> None:
    last = events(post(client, stream=True))[-1]
    assert get(client, f"{PATH}/{last['response']['id']}").json() == last["response"]


def test_what_is_not_to_be_stored_is_not(client: LocalClient) -> None:
    made = ask(client, store=False)
    assert get(client, f"{PATH}/{made['id']}").status == 404


def test_the_next_request_goes_on_and_instructions_do_not_stay(client: LocalClient) -> None:
    first = ask(client, input="north?", instructions="OLD WORDS")
    second = post(
        client, input="south?", previous_response_id=first["id"], instructions="NEW WORDS"
    )
    text = prompt(client, second)
    places = [text.index(part) for part in ("NEW WORDS", "north?", "Aye.", "south?")]
    assert places == sorted(places)
    assert "OLD WORDS" not in text
    made: Any = second.json()
    get(client, f"{PATH}/{first['id']}", method="DELETE")
    third = post(client, input="east?", previous_response_id=made["id"])
    assert "north?" in prompt(client, third)
    listed: Any = get(client, f"{PATH}/{made['id']}/input_items", "order=asc&limit=2").json()
    assert [item["role"] for item in listed["data"]] == ["user", "assistant"]
    assert listed["has_more"]
    rest: Any = get(
        client, f"{PATH}/{made['id']}/input_items", f"order=asc&after={listed['last_id']}"
    ).json()
    assert [item["content"][0]["text"] for item in rest["data"]] == ["south?"]


def test_an_item_stands_for_one_of_a_stored_response(client: LocalClient) -> None:
    made = ask(client)
    items = [
        {"role": "user", "content": "first?"},
        {"type": "item_reference", "id": made["output"][0]["id"]},
        {"role": "user", "content": "second?"},
    ]
    second = post(client, input=items)
    assert "Aye." in prompt(client, second)
    kept: Any = second.json()
    get(client, f"{PATH}/{made['id']}", method="DELETE")
    third = post(client, input="third?", previous_response_id=kept["id"])
    assert "Aye." in prompt(client, third), "what is kept does not depend on what it referred to"


@pytest.mark.parametrize("item", [{"id": ""}, {}, {"id": 5}])
def test_a_reference_to_nothing_is_refused(client: LocalClient, item: dict[str, object]) -> None:
    response = post(client, input=[{"type": "item_reference", **item}])
    assert response.status == 400
    assert b"input[0].id" in response.body


def test_no_tenant_finds_what_is_another_s() -> None:
    guards = [factory("door", Tenants())]
    host = Host({"door": module("door", register_guards=guards)})
    with LocalClient(Config(models=MODELS), host) as client:
        client.script("think", {"pieces": ["<think>", "so", "</think>", "Hi"], "finish": "eos"})
        body = {
            "model": "hermes+think",
            "input": "hi",
            "include": ["reasoning.encrypted_content"],
        }
        asked = {"x-tenant": "a", "x-mock-script": "think"}
        made: Any = client.post(PATH, body, asked).json()
        sealed = {key: made["output"][0][key] for key in ("type", "id", "summary")}
        sealed["encrypted_content"] = made["output"][0]["encrypted_content"]
        items = [{"role": "user", "content": "q"}, sealed, {"role": "assistant", "content": "x"}]
        again = {"model": "hermes+think", "input": [*items, {"role": "user", "content": "r"}]}
        for tenant, status, ignored in (("a", 200, None), ("b", 404, "input[].encrypted_content")):
            headers = {"x-tenant": tenant}
            assert client.get(f"{PATH}/{made['id']}", headers).status == status
            response = client.post(PATH, again, headers)
            assert response.status == 200
            assert response.headers.get("x-tokenwire-ignored") == ignored
