"""Responses through the whole flow: what is stored, gone on from, made in the background."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.flow.wired import factory, module
from tokenwire.core.call import Identity
from tokenwire.core.config import Config, ModelConfig, PluginUse, ServerConfig
from tokenwire.core.host import Host
from tokenwire.core.ports.guard import Guard
from tokenwire.core.shelf import Shelf
from tokenwire.core.testing.client import LocalClient, Recording, Response
from tokenwire.core.wire import HttpRequest

PATH, TALKS = "/v1/responses", "/v1/conversations"
MODELS = tuple(
    ModelConfig(
        name=name,
        engine=PluginUse("mock", {"context_length": 600}),
        tokenizer=PluginUse("script"),
        dialect=name,
    )
    for name in ("plain", "hermes+think")
)
SLOW = {"pieces": ["one ", {"sleep_s": 0.01}, {"repeat": "x", "times": 60}], "finish": "eos"}


class Tenants(Guard):
    """Whoever the header says."""

    async def admit(self, request: HttpRequest, identity: Identity) -> Identity:
        return Identity(tenant=request.headers["x-tenant"])


@pytest.fixture(scope="module")
def client() -> Iterator[LocalClient]:
    config = Config(server=ServerConfig(debug=True, max_background=2), models=MODELS)
    with LocalClient(config) as client:
        client.script("short", {"pieces": ["Aye", "."], "finish": "eos"})
        client.script("slow", SLOW)
        client.script("think", {"pieces": ["<think>", "so", "</think>", "Hi"], "finish": "eos"})
        client.script("patch", {"pieces": list(PATCH_CALL), "finish": "eos"})
        yield client


PATCH_CALL = '<tool_call>\n{"name": "patch", "arguments": {"input": "a\\n\\"b\\""}}\n</tool_call>'


def ask(client: LocalClient, script: str = "short", **fields: Any) -> Any:
    response = post(client, script, **fields)
    assert response.status == 200, response.body
    return response.json()


def post(client: LocalClient, script: str = "short", **fields: Any) -> Response:
    body = {"model": "plain", "input": "hi", **fields}
    return client.post(PATH, body, {"x-mock-script": script})


def get(client: LocalClient, path: str, query: str = "", method: str = "GET") -> Response:
    return client.send(HttpRequest(method, path, query=query))


def prompt(client: LocalClient, response: Response) -> str:
    found = client.deployment.recent_prompt(response.headers["x-request-id"])
    assert found is not None
    return found.prompt.text


def events(response: Response) -> list[Any]:
    return [json.loads(message.data) for message in response.events() if message.comment is None]


# --- stored -------------------------------------------------------------------------------------


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
    assert (gone.status, gone.json()["error"]["code"]) == (404, "not_found")  # type: ignore[index]
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


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"previous_response_id": "resp_nobody"}, "previous_response_id"),
        ({"conversation": "conv_nobody"}, "conversation"),
        ({"conversation": "c", "previous_response_id": "r"}, "previous_response_id"),
        ({"input": [{"type": "item_reference", "id": "msg_nobody"}]}, "input[0].id"),
        ({"background": True, "store": False}, "background"),
        ({"prompt": {"id": "pmpt_1"}}, "prompt"),
        ({"metadata": {"k": "v" * 513}}, "metadata"),
        ({"tool_choice": {"type": "web_search_preview"}}, "tool_choice"),
        (
            {"input": [{"type": "function_call_output", "call_id": "c", "output": "x"}]},
            "input[0].call_id",
        ),
    ],
)
def test_what_is_not_there_or_not_meant_is_refused(
    client: LocalClient, fields: dict[str, Any], param: str
) -> None:
    response = post(client, **fields)
    error: Any = response.json()
    assert response.status == 400
    assert error["error"]["param"] == param
    assert error["error"]["type"] == "invalid_request_error"


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


# --- conversations ------------------------------------------------------------------------------


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


@pytest.mark.parametrize(
    ("fields", "listed"),
    [
        (
            {"input": [{"type": "reasoning", "summary": [{"text": "x", "odd": 1}]}]},
            "input[].summary[].odd",
        ),
        (
            {"input": [{"type": "reasoning", "content": [{"text": "x", "odd": 1}]}]},
            "input[].content[].odd",
        ),
        ({"text": {"format": {"type": "text", "odd": 1}}}, "text.format.odd"),
        ({"tool_choice": {"type": "function", "name": "f", "odd": 1}}, "tool_choice.odd"),
        (
            {
                "tool_choice": {
                    "type": "allowed_tools",
                    "mode": "auto",
                    "tools": [{"type": "function", "name": "f"}, {"type": "web_search"}],
                }
            },
            "tool_choice.tools[]",
        ),
        (
            {
                "tools": [
                    {
                        "type": "custom",
                        "name": "g",
                        "format": {
                            "type": "grammar",
                            "syntax": "regex",
                            "definition": "a",
                            "odd": 1,
                        },
                    }
                ]
            },
            "tools[].format.odd",
        ),
    ],
)
def test_what_nobody_reads_is_listed_however_deep(
    client: LocalClient, fields: dict[str, Any], listed: str
) -> None:
    tools = [{"type": "function", "name": "f", "parameters": {"type": "object"}}]
    response = post(client, **{"tools": tools, **fields})
    assert response.status == 200, response.body
    assert listed in response.headers["x-tokenwire-ignored"].split(", ")


@pytest.mark.parametrize("item", [{"id": ""}, {}, {"id": 5}])
def test_a_reference_to_nothing_is_refused(client: LocalClient, item: dict[str, object]) -> None:
    response = post(client, input=[{"type": "item_reference", **item}])
    assert response.status == 400
    assert b"input[0].id" in response.body


def test_a_conversation_grows_by_question_and_answer(client: LocalClient) -> None:
    items = [{"role": "user", "content": "I am Bo."}]
    talk: Any = client.post(TALKS, {"items": items, "metadata": {"a": "b"}}).json()
    path = f"{TALKS}/{talk['id']}"
    for said in ("one?", "two?"):
        response = post(client, input=said, conversation={"id": talk["id"]})
        assert response.json()["conversation"] == {"id": talk["id"]}  # type: ignore[index]
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


# --- in the background --------------------------------------------------------------------------


def wait_for(client: LocalClient, id_: str, status: str) -> Any:
    for _ in range(400):
        made: Any = get(client, f"{PATH}/{id_}").json()
        if made["status"] == status:
            return made
        client.run(asyncio.sleep(0.01))
    raise AssertionError(f"{id_} is {made['status']}, not {status}")


def test_an_answer_in_the_background_is_made_without_anybody(client: LocalClient) -> None:
    queued = ask(client, background=True)
    assert (queued["status"], queued["output"]) == ("queued", [])
    made = wait_for(client, queued["id"], "completed")
    assert made["output"][0]["content"][0]["text"] == "Aye."
    path = f"{PATH}/{queued['id']}"
    told = events(get(client, path, "stream=true"))
    assert [event["sequence_number"] for event in told] == list(range(len(told)))
    assert told[1]["type"] == "response.queued"
    assert told[-1]["response"] == made
    assert events(get(client, path, "stream=true&starting_after=4")) == told[5:]
    assert get(client, f"{path}/cancel", method="POST").json() == made, "too late to cancel"


def test_a_stream_in_the_background_outlives_its_connection(client: LocalClient) -> None:
    async def leave() -> Recording:
        body = json.dumps({"model": "plain", "input": "x", "background": True, "stream": True})
        headers = {"x-mock-script": "slow"}
        exchange = Recording()
        flow = client.deployment.flow
        task = asyncio.ensure_future(
            flow.handle(HttpRequest("POST", PATH, headers, body=body.encode()), exchange)
        )
        while not exchange.chunks:
            await asyncio.sleep(0)
        exchange.leave()
        await task
        return exchange

    first = client.run(leave()).chunks[0]
    id_ = json.loads(first.partition(b"data: ")[2].partition(b"\n")[0])["response"]["id"]
    made = wait_for(client, id_, "completed")
    assert made["output"][0]["content"][0]["text"] == "one " + "x" * 60


def test_cancelling_ends_the_job_and_keeps_what_there_is(client: LocalClient) -> None:
    queued = ask(client, "slow", background=True)
    wait_for(client, queued["id"], "in_progress")
    path = f"{PATH}/{queued['id']}"
    cancelled: Any = get(client, f"{path}/cancel", method="POST").json()
    assert cancelled["status"] == "cancelled"
    assert get(client, path).json() == cancelled
    assert events(get(client, path, "stream=true"))[-1]["response"] == cancelled
    statuses = client.deployment.engine_statuses()
    assert statuses["plain"].running == 0


def test_a_wish_to_cancel_in_the_store_is_found(client: LocalClient) -> None:
    """As another worker would leave it."""
    client.script("endless", {"pieces": [{"repeat": "x ", "times": 400}, {"sleep_s": 30}]})
    queued = ask(client, "endless", background=True)
    shelf = Shelf(client.deployment.store, 60.0)
    client.run(shelf.ask("default", queued["id"], "cancel"))
    wait_for(client, queued["id"], "cancelled")


def test_deleting_ends_it_and_leaves_nothing(client: LocalClient) -> None:
    queued = ask(client, "slow", background=True)
    path = f"{PATH}/{queued['id']}"
    assert get(client, path, method="DELETE").status == 200
    client.run(asyncio.sleep(0.6))
    assert get(client, path).status == 404


def test_so_many_at_a_time_and_no_more(client: LocalClient) -> None:
    client.script("wait", {"pieces": ["a", {"sleep_s": 30}, "b"]})
    begun = [ask(client, "wait", background=True) for _ in range(2)]
    refused = post(client, "wait", background=True)
    assert refused.status == 429
    assert "retry-after" in refused.headers
    for made in begun:
        get(client, f"{PATH}/{made['id']}/cancel", method="POST")


def test_only_the_background_can_be_cancelled_or_followed(client: LocalClient) -> None:
    made = ask(client)
    for response in (
        get(client, f"{PATH}/{made['id']}/cancel", method="POST"),
        get(client, f"{PATH}/{made['id']}", "stream=true"),
    ):
        assert response.status == 400


def test_a_failure_in_the_background_is_told(client: LocalClient) -> None:
    client.script("lost", {"pieces": ["a", {"engine_error": "lost"}], "finish": "abort"})
    queued = ask(client, "lost", background=True)
    made = wait_for(client, queued["id"], "failed")
    assert made["error"]["type"] == "unavailable"


def test_what_runs_at_shutdown_is_told_to_have_failed() -> None:
    config = Config(models=MODELS)
    with LocalClient(config) as client:
        client.script("wait", {"pieces": ["a", {"sleep_s": 30}, "b"]})
        queued = ask(client, "wait", background=True)
        deployment = client.deployment
        shelf = Shelf(deployment.store, 60.0)
        closed = deployment.store.close

        async def keep_open() -> None:
            kept.append(await shelf.answer("default", queued["id"]))
            await closed()

        kept: list[Any] = []
        deployment.store.close = keep_open  # type: ignore[method-assign]
    assert json.loads(kept[0].body)["status"] == "failed"
    assert kept[0].status == "over"


# --- who may see it -----------------------------------------------------------------------------


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


# --- the rest -----------------------------------------------------------------------------------


def test_sealed_reasoning_comes_back_into_the_prompt(client: LocalClient) -> None:
    fields = {"model": "hermes+think", "include": ["reasoning.encrypted_content"], "store": False}
    made = ask(client, "think", **fields)
    thought = made["output"][0]
    del thought["content"]
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "c", "output": "ok"}
    items = [{"role": "user", "content": "q"}, thought, call, result]
    response = post(client, model="hermes+think", input=items)
    assert "<think>\nso\n</think>" in prompt(client, response)
    thought["encrypted_content"] = thought["encrypted_content"][:-8] + "AAAAAAA="
    response = post(client, model="hermes+think", input=items)
    assert "<think>\nso" not in prompt(client, response)
    assert response.headers["x-tokenwire-ignored"] == "input[].encrypted_content"


def test_a_custom_tool_is_called_in_plain_text(client: LocalClient) -> None:
    tool = {"type": "custom", "name": "patch", "description": "Edits."}
    streamed = events(
        post(client, "patch", model="hermes+think", tools=[tool], stream=True, input="fix")
    )
    deltas = [
        event["delta"]
        for event in streamed
        if event["type"] == "response.custom_tool_call_input.delta"
    ]
    call = streamed[-1]["response"]["output"][0]
    assert "".join(deltas) == call["input"] == 'a\n"b"'
    assert len(deltas) > 1
    items = [
        {"role": "user", "content": "fix"},
        call,
        {"type": "custom_tool_call_output", "call_id": call["call_id"], "output": "done"},
    ]
    response = post(client, model="hermes+think", tools=[tool], input=items)
    text = prompt(client, response)
    assert '"input": {"type": "string"}' in text or '"input":{"type":"string"}' in text
    assert "done" in text


def test_the_oldest_items_are_left_out_where_that_is_asked_for(client: LocalClient) -> None:
    items = [
        {"role": role, "content": f"{word} " * 40}
        for role, word in zip(
            ("user", "assistant") * 3 + ("user",), ("a", "b", "c", "d", "e", "f", "g"), strict=True
        )
    ]
    assert post(client, input=items, max_output_tokens=9).status == 400
    response = post(client, input=items, max_output_tokens=9, truncation="auto")
    assert response.status == 200
    text = prompt(client, response)
    assert "a a" not in text
    assert "g g" in text
    assert response.headers["x-tokenwire-ignored"].startswith("input[:")
    counted: Any = client.post(
        f"{PATH}/input_tokens", {"model": "plain", "input": items, "truncation": "auto"}
    ).json()
    assert counted["object"] == "response.input_tokens"
    assert counted["input_tokens"] < 600


def test_counting_is_what_a_call_takes(client: LocalClient) -> None:
    first = ask(client)
    fields = {"input": "more", "previous_response_id": first["id"], "instructions": "Be brief."}
    counted: Any = client.post(f"{PATH}/input_tokens", {"model": "plain", **fields}).json()
    assert counted["input_tokens"] == ask(client, **fields)["usage"]["input_tokens"]


def test_compaction_is_refused_in_words(client: LocalClient) -> None:
    response = client.post(f"{PATH}/compact", {"model": "plain"})
    assert response.status == 400
    assert "truncation" in response.json()["error"]["message"]  # type: ignore[index]
