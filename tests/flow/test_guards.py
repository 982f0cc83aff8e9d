"""Guards: asked before anything is read, in order; who names the tenant first decides; and a tenant
keeps prompts and answers apart."""

from __future__ import annotations

from typing import Any

import pytest

from tests.flow.wired import HELLO, Doorman, Told, ask, factory, request, serving
from tokenwire.core.call import Identity
from tokenwire.core.config import CacheConfig
from tokenwire.core.errors import ErrorKind, RequestError
from tokenwire.core.ports.guard import Guard
from tokenwire.core.ports.store import AtomicOp, Store
from tokenwire.core.testing.client import LocalClient
from tokenwire.core.wire import HttpRequest
from tokenwire.plugins.cache.memory.store import MemoryStore

KEYLESS = RequestError("there is no key", kind=ErrorKind.AUTHENTICATION)
BUSY = RequestError("too many", kind=ErrorKind.RATE_LIMITED, retry_after=7)


def send(client: LocalClient, path: str, body: bytes = b"", method: str = "POST") -> Any:
    return client.send(HttpRequest(method, path, body=body))


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
def test_they_are_asked_before_decoding(path: str) -> None:
    with serving(guards=[Doorman(refusal=KEYLESS)]) as (client, (spied,)):
        response = send(client, path, b"{ no JSON")
        assert response.status == 401
        error = response.json()["error"]
        assert error["type"] == "authentication_error"
        assert error["message"] == "there is no key"
        assert ("type" in response.json()) == (path == "/v1/messages")
        assert response.headers["x-request-id"]
        assert not spied.jobs


@pytest.mark.parametrize("protocol", ["chat_completions", "messages"])
def test_a_refusal_has_the_protocols_shape_and_says_when(protocol: str) -> None:
    with serving(guards=[Doorman(refusal=BUSY)]) as (client, (spied,)):
        response = ask(client, protocol, stream=True)
        body: Any = response.json()
        assert (response.status, body["error"]["type"]) == (429, "rate_limit_error")
        assert response.headers["retry-after"] == "7"
        assert not spied.jobs


def test_they_are_asked_in_order_and_none_behind_the_one_that_refuses() -> None:
    first, second, third = Doorman("a"), Doorman(refusal=KEYLESS), Doorman()
    with serving(guards=[first, second, third]) as (client, _):
        assert ask(client).status == 401
    assert len(first.asked) == len(second.asked) == 1
    assert second.asked[0][1].tenant == "a"
    assert not third.asked


def test_a_guard_that_lets_all_in_changes_nothing_and_is_asked_once() -> None:
    guard = Doorman()
    with serving(guards=[guard]) as (client, (spied,)):
        assert ask(client).status == 200
        assert len(guard.asked) == 1
        assert guard.asked[0][0].path == "/v1/chat/completions"
        assert spied.jobs[0].kv.salt == ""


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/v1/models", {}),
        ("GET", "/v1/models/m", {}),
        ("POST", "/v1/messages/count_tokens", HELLO),
    ],
)
def test_questions_are_guarded_too(method: str, path: str, body: dict[str, Any]) -> None:
    asked = request(body).body
    with serving(guards=[Doorman(refusal=KEYLESS)]) as (client, _):
        assert send(client, path, asked, method).status == 401
    with serving() as (client, _):
        assert send(client, path, asked, method).status == 200


def salt(*tenants: str | None, **more: Any) -> str:
    """Which salt the job got, where guards name these tenants one after another."""
    guards = [Doorman(tenant) for tenant in tenants]
    with serving(guards=guards) as (client, (spied,)):
        assert ask(client, **more).status == 200
        assert all(len(guard.asked) == 1 for guard in guards), "who comes later may still refuse"
        return spied.jobs[0].kv.salt


def test_the_first_that_names_a_tenant_decides() -> None:
    a, b = salt("a"), salt("b")
    assert len({a, b, salt()}) == 3
    assert salt("a", "b") == salt("a", None) == salt("a", "b", "c") == a
    assert salt(None, "b", "c") == salt(None, None, "b") == b
    assert salt(None, None) == salt() == ""


def test_a_guard_may_know_the_user_where_the_client_does_not_say() -> None:
    told = Told()

    class Knows(Guard):
        async def admit(self, request: HttpRequest, identity: Identity) -> Identity:
            return Identity("a", user="known", session="one")

    with serving(guards=[Knows(), Doorman()], observers=[told]) as (client, _):
        ask(client)
        ask(client, user="u", session_id="s")
    who = [(each.tenant, each.user, each.session) for each in told.started]
    assert who == [("a", "known", "one"), ("a", "u", "s")]


def test_salts_keep_tenants_apart_and_clients_may_split_further() -> None:
    salts = [salt(*who, cache_salt=wish) for who in ((), ("a",), ("b",)) for wish in ("x", "y")]
    assert len({*salts, salt(), salt("a"), salt("b")}) == 9
    assert salt("a", cache_salt="x", user="b") == salt("a", cache_salt="x")


@pytest.mark.parametrize("more", [{"user": "b"}, {"safety_identifier": "b"}])
def test_what_the_client_calls_itself_is_no_tenant(more: dict[str, str]) -> None:
    with serving() as (client, (spied,)):
        ask(client, **more)
        ask(client, "messages", metadata={"user_id": "b"})
        assert [job.kv.salt for job in spied.jobs] == ["", ""]


class Shelves(Store):
    """A store that tells which namespaces were used."""

    def __init__(self) -> None:
        self.inner = MemoryStore(max_bytes=1 << 20)
        self.used: set[str] = set()

    async def get(self, namespace: str, key: str) -> bytes | None:
        self.used.add(namespace)
        return await self.inner.get(namespace, key)

    async def set(
        self, namespace: str, key: str, value: bytes, *, ttl_s: float | None = None
    ) -> None:
        self.used.add(namespace)
        await self.inner.set(namespace, key, value, ttl_s=ttl_s)

    async def delete(self, namespace: str, key: str) -> bool:
        return await self.inner.delete(namespace, key)

    async def keys(self, namespace: str) -> tuple[str, ...]:
        return await self.inner.keys(namespace)

    async def apply(self, op: AtomicOp, namespace: str, key: str) -> float:
        self.used.add(namespace)
        return await self.inner.apply(op, namespace, key)

    async def close(self) -> None:
        await self.inner.close()


def test_tenants_never_get_each_others_answers_and_users_share_them() -> None:
    guard, shelves = Doorman("a"), Shelves()
    cached = CacheConfig(type="shelves", answers=True)
    with serving(
        guards=[guard], plugins=[factory("shelves", shelves)], kind="stores", cache=cached
    ) as (client, (spied,)):
        ask(client, temperature=0, user="u")
        hit = ask(client, temperature=0, user="v")
        assert hit.headers["x-tokenwire-cache"] == "hit"
        assert len(spied.jobs) == 1
        assert {name.partition(":")[2] for name in shelves.used} == {"a"}
        shelves.used.clear()
        guard.tenant = "b"
        assert "x-tokenwire-cache" not in ask(client, temperature=0, user="u").headers
        assert len(spied.jobs) == 2
        assert {name.partition(":")[2] for name in shelves.used} == {"b"}


def test_a_guard_with_a_bug_lets_nobody_in(caplog: pytest.LogCaptureFixture) -> None:
    with serving(guards=[Doorman(refusal=ZeroDivisionError("oops"))]) as (client, (spied,)):
        response = ask(client, "messages")
        body: Any = response.json()
        assert (response.status, body["error"]["type"]) == (500, "api_error")
        assert "oops" not in body["error"]["message"]
        assert not spied.jobs
    assert "ZeroDivisionError" in caplog.text
