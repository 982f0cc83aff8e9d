"""Responses made in the background: followed, cancelled, deleted, failed."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from tests.flow.responses.asking import MODELS, PATH, ask, events, get, post
from tokenwire.core.config import Config
from tokenwire.core.shelf import Shelf
from tokenwire.core.testing.client import LocalClient, Recording
from tokenwire.core.wire import HttpRequest


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
