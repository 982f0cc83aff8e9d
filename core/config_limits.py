"""What a configuration's values must be beyond their types. Knows no file and no plugin."""

from __future__ import annotations

import re

from tokenwire.core.config import CacheConfig, Config, ModelConfig, ServerConfig
from tokenwire.core.settings import Place

__all__ = ("PLUGIN_NAME", "check_limits", "check_server")

PLUGIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
PATH = re.compile(r"/[A-Za-z0-9._~/-]*")
"""Without what servers and clients write in several ways (RFC 3986, 2.3), and without patterns."""
MOST_WORKERS = 256


def check_limits(config: Config, place: Place, *, is_short: bool) -> None:
    """Raises ConfigError for the first value that cannot be. `is_short`: a model may be unnamed."""
    check_server(config.server, place.at("server"))
    _check_cache(config.cache, place.at("cache"))
    _check_models(config, place, is_short=is_short)


def check_server(server: ServerConfig, place: Place) -> None:
    wanted = {
        "host": (bool(server.host), "an address or a name"),
        "port": (0 <= server.port <= 65535, "a port, 0 to 65535"),
        "health_check": (
            server.health_check is None or PATH.fullmatch(server.health_check) is not None,
            "a path that begins with / and has letters, digits and . _ ~ - only",
        ),
        "workers": (1 <= server.workers <= MOST_WORKERS, f"1 to {MOST_WORKERS}"),
        "request_timeout": (server.request_timeout > 0, "seconds, more than 0"),
        "keepalive": (server.keepalive > 0, "seconds, more than 0"),
        "max_body": (server.max_body > 0, "bytes, more than 0"),
        "max_background": (server.max_background >= 0, "a number, 0 or more"),
        "flush_interval": (0 <= server.flush_interval <= 1, "seconds, 0 to 1"),
        "drain_timeout": (server.drain_timeout >= 0, "seconds, 0 or more"),
    }
    for key, (is_right, what) in wanted.items():
        if not is_right:
            raise place.at(key).wrong(getattr(server, key), f"wanted {what}")
    for key in ("max_bytes", "max_files", "timeout", "redirects"):
        value = getattr(server.media, key)
        if value < 0 or (value == 0 and key != "redirects"):
            raise place.at("media").at(key).wrong(value, "wanted more than 0")
    if server.cors.max_age < 0:
        raise place.at("cors").at("max_age").wrong(server.cors.max_age, "wanted seconds, 0 or more")


def _check_cache(cache: CacheConfig, place: Place) -> None:
    if not PLUGIN_NAME.fullmatch(cache.type):
        raise place.at("type").wrong(cache.type, "wanted a store plugin's name")
    for name in ("answers_ttl", "history_ttl", "responses_ttl"):
        if not getattr(cache, name) > 0:
            raise place.at(name).wrong(getattr(cache, name), "wanted seconds, more than 0")


def _check_models(config: Config, place: Place, *, is_short: bool) -> None:
    seen: dict[str, str] = {}
    for n, model in enumerate(config.models):
        here = place.at("models").index(n)
        if not is_short:
            _check_model(model, here, config.enable_mock)
        for name in (model.name, *model.aliases):
            if name in seen:
                raise here.wrong(name, f"this name is taken by {seen[name]}")
            seen[name] = here.key


def _check_model(model: ModelConfig, place: Place, enable_mock: bool | None) -> None:
    if not model.name or not all(model.aliases):
        raise place.at("name").error("wanted a name, got an empty text")
    if enable_mock is False and model.engine.plugin == "mock":
        raise place.at("engine").wrong("mock", "but enable_mock is false")
    if model.context_length is not None and model.context_length < 1:
        raise place.at("context_length").wrong(model.context_length, "wanted 1 or more")
    if model.tokenizer is None and model.checkpoint is None:
        raise place.error("the key 'tokenizer' is missing (or 'checkpoint', a folder that has one)")
