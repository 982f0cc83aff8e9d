"""What `cache:` may say of Redis, its secrets, and what is said without the library."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import msgspec
import pytest

from tokenwire.core.errors import ConfigError, StoreError
from tokenwire.core.secrets import Secret
from tokenwire.core.settings import Place, convert
from tokenwire.plugins.cache.redis.lua import milliseconds
from tokenwire.plugins.cache.redis.settings import RedisSettings
from tokenwire.plugins.cache.redis.store import RedisStore


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"endpoint": "http://redis:6379"}, "'http'"),
        ({"endpoint": "redis-svc:6379"}, "wanted internal://"),
        ({"endpoint": "internal://redis-svc"}, "internal://name:port"),
        ({"endpoint": "internal://redis-svc:0"}, "1 to 65535"),
        ({"endpoint": "internal://redis-svc:6379/2"}, "internal://name:port"),
        ({"endpoint": "redis://:hunter2@redis"}, "cache.password"),
        ({"endpoint": "unix:///s?password=hunter2"}, "cache.password"),
        ({"password": "hunter2"}, "env:NAME or file:PATH"),
        ({"timeout_s": 0}, "timeout_s"),
        ({"prefix": "a:b"}, "prefix"),
        ({"prefix": ""}, "prefix"),
        ({"endpont": "redis://x"}, "endpont"),
    ],
)
def test_what_cannot_be_is_refused_in_words(settings, message):
    with pytest.raises(ConfigError) as caught:
        convert(RedisSettings, settings, Place("d.yaml", "cache"))
    assert message in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "endpoint",
    ["internal://redis-svc:6379", "internal://[::1]:6379", "rediss://r:1/2", "unix:///run/r.sock"],
)
def test_each_form_of_endpoint_opens_nothing_yet(endpoint):
    RedisStore(msgspec.convert({"endpoint": endpoint}, RedisSettings))


def test_a_password_is_read_again_for_each_connection(own_valkey, tmp_path):
    server = own_valkey("--requirepass", "secret")
    path = tmp_path / "password"
    path.write_text("wrong\n")

    async def check():
        settings = RedisSettings(
            endpoint=server.url, password=Secret("file", str(path)), timeout_s=20.0
        )
        store = RedisStore(settings)
        with pytest.raises(StoreError) as caught:
            await store.get("n", "k")
        assert "wrong" not in str(caught.value).replace("WRONGPASS", "")
        path.write_text("secret\n")
        assert await store.get("n", "k") is None
        await store.close()

    asyncio.run(check())


def test_a_password_from_the_environment_and_a_missing_one(own_valkey, monkeypatch):
    server = own_valkey("--requirepass", "secret")

    async def check():
        settings = RedisSettings(
            endpoint=server.url, password=Secret("env", "TOKENWIRE_TEST_REDIS")
        )
        store = RedisStore(msgspec.structs.replace(settings, timeout_s=20.0))
        with pytest.raises(StoreError, match="TOKENWIRE_TEST_REDIS"):
            await store.get("n", "k")
        monkeypatch.setenv("TOKENWIRE_TEST_REDIS", "secret")
        assert await store.get("n", "k") is None
        await store.close()

    asyncio.run(check())


WITHOUT_REDIS = """
import sys
sys.modules["redis"] = None
from tokenwire.core.errors import ConfigError
from tokenwire.plugins.cache import redis
(factory,) = redis.register_stores()
try:
    factory.build(factory.settings(), None)
except ConfigError as error:
    print(error)
"""


def test_without_the_library_it_is_listed_and_says_what_to_install():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_REDIS], capture_output=True, text=True, check=True
    )
    assert "pip install 'tokenwire[redis]'" in done.stdout


@pytest.mark.parametrize(
    ("ttl_s", "wanted"),
    [(None, None), (0.0001, 1), (1, 1000), (0.0015, 2), (0, 0), (-5, -1), (float("inf"), None)],
)
def test_ttls_round_up_to_milliseconds(ttl_s, wanted):
    assert milliseconds(ttl_s) == wanted


def test_a_ttl_that_is_no_number_is_refused():
    with pytest.raises(StoreError):
        milliseconds(float("nan"))
