"""Serving a configuration over the mock engine, and where that is refused. Reads no file."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv6Address, ip_address
from pathlib import Path

import msgspec

from tokenwire.core.config import Config, ModelConfig, PluginUse
from tokenwire.core.settings import Place

__all__ = ("is_loopback", "refuse_public_mock", "with_mock")

MOCK = "mock"
MEMORY = "memory"


def with_mock(config: Config) -> Config:
    """Every model on the mock engine, with its own tokenizer, template, limits and task, so that a
    production file runs on a laptop. A tokenizer that is not there becomes `bytes` and `plain`,
    with a warning; a short-form model is named `default`. Twice is once."""
    models: list[ModelConfig] = []
    warnings: list[str] = list(config.warnings)
    for model in config.models:
        swapped = _swapped(model)
        missing = _missing_tokenizer(model)
        if missing is not None:
            warnings.append(
                f"model '{swapped.name}': {missing}: it is served with the tokenizer bytes and the "
                "dialect plain"
            )
            swapped = _with_bytes(swapped)
        models.append(swapped)
    cache = config.cache
    if cache.type != MEMORY:
        # Why: a laptop has no such service, nor perhaps the library for it.
        warnings.append(f"cache: under the mock the store is memory, not {cache.type}")
        cache = msgspec.structs.replace(cache, type=MEMORY, settings={})
    return msgspec.structs.replace(
        config, models=tuple(models), cache=cache, enable_mock=True, warnings=tuple(warnings)
    )


def refuse_public_mock(config: Config, file: str = "") -> None:
    """Raises ConfigError for a host that others can reach while a mock model (and with it the
    script routes) or `server.debug` is on, unless `server.allow_mock_public` wants just that.
    `file`: where the host stands, for the message."""
    server = config.server
    mocks = [
        model.name or "default"
        for model in config.models
        if config.enable_mock or model.engine.plugin == MOCK
    ]
    if server.allow_mock_public or is_loopback(server.host) or not (mocks or server.debug):
        return
    what = f"model '{mocks[0]}' is on the mock engine" if mocks else "server.debug is on"
    raise Place(file, "server.host").wrong(
        server.host,
        f"others can reach it while {what}: bind 127.0.0.1, or say server.allow_mock_public: true",
    )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`. A name other than localhost is not looked up."""
    if host.rstrip(".").lower() == "localhost":
        return True
    try:
        address = ip_address(host.strip("[]"))
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback


def _swapped(model: ModelConfig) -> ModelConfig:
    engine = model.engine
    if engine.plugin != MOCK:
        # Why: whoever asks for vectors wants some of the mock too.
        is_embedder = engine.settings.get("task") == "embed"
        engine = PluginUse(MOCK, {"tasks": ["embed"]} if is_embedder else {})
    return msgspec.structs.replace(model, name=model.name or "default", engine=engine)


def _with_bytes(model: ModelConfig) -> ModelConfig:
    return msgspec.structs.replace(
        model,
        tokenizer=PluginUse("bytes"),
        dialect="plain",
        chat_template=None,
        parser=None,
        checkpoint=None,
    )


def _missing_tokenizer(model: ModelConfig) -> str | None:
    """Why there is no tokenizer, in words; None when there is one, or when a plugin must know."""
    paths = list(_tokenizer_paths(model))
    if model.tokenizer is None and not paths:
        return "it names no tokenizer"
    for path in paths:
        if not path.exists():
            return f"{path} is not there"
    return None


def _tokenizer_paths(model: ModelConfig) -> Iterable[Path]:
    if model.tokenizer is not None:
        path = model.tokenizer.settings.get("path")
        if isinstance(path, str):
            yield Path(path)
    elif model.checkpoint is not None:
        yield Path(model.checkpoint) / "tokenizer.json"
