"""Conversations: what they hold, and what a response adds to one."""

from __future__ import annotations

from typing import Any

from tests.flow.responses.asking import TALKS, ask, get, post, prompt
from tokenwire.core.testing.client import LocalClient


def test_an_empty_conversation_takes_sealed_reasoning_and_checks_results(
    client: LocalClient,
) -> None:
    thought = {"model": "hermes+think", "include": ["reasoning.encrypted_content"]}
    first = ask(client, "think", **thought)["output"][0]
    sealed = {key: first[key] for key in ("type", "id", "summary", "encrypted_content")}
    asked = [sealed, {"role": "assistant", "content": "x"}, {"role": "user", "content": "y"}]
    talk: Any = client.post(TALKS, {}).json()
    response = post(client, model="hermes+think", input=asked, conversation=talk["id"])
    assert response.status == 200, response.body
    talk = client.post(TALKS, {}).json()
    result = [{"type": "function_call_output", "call_id": "nobody", "output": "x"}]
    response = post(client, input=result, conversation=talk["id"])
    assert response.status == 400
    assert b"input[0].call_id" in response.body


def test_a_conversation_grows_by_question_and_answer(client: LocalClient) -> None:
    items = [{"role": "user", "content": "I am Bo."}]
    talk: Any = client.post(TALKS, {"items": items, "metadata": {"a": "b"}}).json()
    path = f"{TALKS}/{talk['id']}"
    for said in ("one?", "two?"):
        response = post(client, input=said, conversation={"id": talk["id"]})
        made: Any = response.json()
        assert made["conversation"] == {"id": talk["id"]}
    text = prompt(client, response)
    places = [text.index(part) for part in ("I am Bo.", "one?", "Aye.", "two?")]
    assert places == sorted(places)
    listed: Any = get(client, f"{path}/items", "order=asc").json()
    assert [item["role"] for item in listed["data"]] == [
        "user",
        "user",
        "assistant",
        "user",
        "assistant",
    ]
    first = listed["first_id"]
    assert get(client, f"{path}/items/{first}").json() == listed["data"][0]
    assert get(client, f"{path}/items/{first}", method="DELETE").status == 200
    assert get(client, f"{path}/items/{first}").status == 404
    added: Any = client.post(f"{path}/items", {"items": items}).json()
    assert added["data"][0]["content"] == [{"type": "input_text", "text": "I am Bo."}]
    changed: Any = client.post(path, {"metadata": {"c": "d"}}).json()
    assert changed["metadata"] == {"c": "d"}
    assert get(client, path).json() == changed
    assert get(client, path, method="DELETE").json() == {
        "id": talk["id"],
        "object": "conversation.deleted",
        "deleted": True,
    }
    assert get(client, path).status == 404
