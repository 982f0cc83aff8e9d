"""Signatures over the whole way: gateways with the same keys take each other's, and a key that is
rotated out is taken until it is listed no more."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.flow.wired import until
from tokenwire.core import deployment as deployment_module
from tokenwire.core.config import Config, ModelConfig, PluginUse, ServerConfig
from tokenwire.core.secrets import Secret
from tokenwire.core.signing import Keyring
from tokenwire.core.testing.client import LocalClient

ASK: list[dict[str, Any]] = [{"role": "user", "content": "2+2?"}]
SCRIPT = {"pieces": ["<think>", "two", "</think>", "\n\n", "four"], "finish": "eos"}
LISTED = "messages[].content[].signature"


def gateway(*keys: Path) -> LocalClient:
    secrets = tuple(Secret("file", str(path)) for path in keys)
    model = ModelConfig("m", PluginUse("mock"), PluginUse("script"), "hermes")
    return LocalClient(Config(server=ServerConfig(keys=secrets), models=(model,)))


def ask(client: LocalClient, messages: list[dict[str, Any]], **headers: str) -> Any:
    body = {"model": "m", "max_tokens": 99, "messages": messages}
    return client.post("/v1/messages", body, headers)


def thought(client: LocalClient) -> list[dict[str, Any]]:
    """A history with a block that this gateway signed."""
    client.script("think", SCRIPT)
    answer = ask(client, ASK, **{"x-mock-script": "think"}).json()
    assert answer["content"][0]["signature"]
    return [*ASK, {"role": "assistant", "content": answer["content"]}, *ASK]


def is_taken(client: LocalClient, history: list[dict[str, Any]]) -> bool:
    return LISTED not in ask(client, history).headers.get("x-tokenwire-ignored", "")


def write(path: Path, key: bytes) -> Path:
    """As tools rotate: a new file in the place of the old one."""
    other = path.with_suffix(".new")
    other.write_bytes(key)
    os.replace(other, path)
    return path


def test_gateways_with_the_same_keys_take_each_others_signatures(tmp_path: Path) -> None:
    one, two = write(tmp_path / "1", b"1" * 32), write(tmp_path / "2", b"2" * 32)
    with gateway(one) as first, gateway(two, one) as second, gateway(two) as third:
        history = thought(first)
        assert is_taken(first, history)
        assert is_taken(second, history)
        assert not is_taken(third, history)
        assert not is_taken(first, thought(second)), "the first key listed is the one that signs"
        assert is_taken(third, thought(second))


def test_keys_rotate_without_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deployment_module, "KEYS_LOOK_S", 0.001)
    new, old = write(tmp_path / "new", b"1" * 32), write(tmp_path / "old", b"1" * 32)
    with gateway(new, old) as client, gateway(write(tmp_path / "2", b"2" * 32)) as other:
        before = thought(client)
        write(new, b"2" * 32)
        keys = client.deployment._services.keys
        mark = keys.sign("test", b"x")
        client.run(until(lambda: keys.sign("test", b"x") != mark))
        after = thought(client)
        assert is_taken(other, after), "the new key signs"
        assert is_taken(client, before), "the old key is still listed"
        write(old, b"2" * 32)
        client.run(until(lambda: not keys.verify("test", b"x", mark)))
        assert not is_taken(client, before)
        assert is_taken(client, after)


def test_a_key_that_cannot_be_read_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(deployment_module, "KEYS_LOOK_S", 0.001)
    path = write(tmp_path / "key", b"1" * 32)
    with gateway(path) as client:
        history = thought(client)
        for spoil in (lambda: path.write_bytes(b"short"), path.unlink):
            caplog.clear()
            spoil()
            client.run(until(lambda: "keeping the old ones" in caplog.text))
            assert is_taken(client, history)
        write(path, b"2" * 32)
        client.run(until(lambda: not is_known(client, b"1" * 32)))


def is_known(client: LocalClient, key: bytes) -> bool:
    return client.deployment._services.keys.verify("test", b"", Keyring([key]).sign("test", b""))
