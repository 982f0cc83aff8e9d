"""A configuration file as a Config: short form, full form, plugin uses, environment. Opens no path
but the file itself, and no socket. Knows no plugin: a plugin's settings are checked by the host.

Relative paths in a file are taken from the working directory.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePath

import msgspec
from msgspec import Struct

from tokenwire.core.config import CacheConfig, Config, ModelConfig, PluginUse
from tokenwire.core.config_limits import PLUGIN_NAME, check_limits, check_server
from tokenwire.core.config_syntax import read_mapping
from tokenwire.core.errors import ConfigError
from tokenwire.core.settings import Place, convert, keys_of, nearest

__all__ = (
    "TOP_LEVEL",
    "ShortForm",
    "load",
    "overlay",
    "parse",
    "uses",
)

PATHS = {"tokenizer": "hf", "chat_template": "jinja"}
"""Keys that take a path too, and the plugin that reads it (its settings have `path`)."""
USES = ("engine", "tokenizer", "chat_template", "parser")


class ShortForm(Struct, frozen=True):
    """`inference_engine:` One model on the `remote` engine, named by the engine's card."""

    endpoint: str | None = None
    """The engine: `internal://NAME:PORT` (every address of that name), http:// or https://."""
    enable_mock: bool | None = None
    """As at top level of the full form."""
    tokenizer_path: str | None = None
    """tokenizer.json; the chat template is looked for beside it."""


TOP_LEVEL = (
    "server",
    "models",
    "inference_engine",
    "cache",
    "enable_mock",
    "plugins",
    "replaces",
)


def load(path: Path, *, environ: Mapping[str, str]) -> Config:
    """Read a file. Raises ConfigError: one sentence with file, key, value and the nearest key."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: is not UTF-8 (byte {error.start})") from error
    return parse(text, str(path), environ)


def parse(text: str, name: str, environ: Mapping[str, str]) -> Config:
    """Read text; `name` is the file's, for messages, and says TOML by ending in .toml."""
    raw = read_mapping(text, name)
    place = Place(name)
    for key, value in raw.items():
        if key not in TOP_LEVEL:
            raise place.at(key).wrong(value, "there is no such key" + nearest(key, TOP_LEVEL))
    # Why: `server:` with every line under it commented out is null in YAML, and means nothing.
    raw = {key: value for key, value in raw.items() if value is not None}
    models, enable_mock = _models(raw, place)
    ready: dict[str, object] = {key: raw[key] for key in raw if key in ("server", "plugins")}
    ready |= {"models": models, "enable_mock": enable_mock, "replaces": raw.get("replaces", {})}
    if "cache" in raw:
        ready["cache"] = _cache(raw["cache"], place.at("cache"))
    config = convert(Config, ready, place)
    check_limits(config, place, is_short="inference_engine" in raw)
    return overlay(config, environ)


def overlay(config: Config, environ: Mapping[str, str]) -> Config:
    """The configuration under TOKENWIRE_SERVER_HOST and TOKENWIRE_SERVER_PORT."""
    server = config.server
    if host := environ.get("TOKENWIRE_SERVER_HOST"):
        server = msgspec.structs.replace(server, host=host)
    if text := environ.get("TOKENWIRE_SERVER_PORT"):
        place = Place("TOKENWIRE_SERVER_PORT")
        if not text.isascii() or not text.isdigit():
            raise ConfigError(f'{place.file} = "{text[:20]}": wanted a port, 0 to 65535')
        server = msgspec.structs.replace(server, port=int(text[:6]))
        check_server(server, place)
    return msgspec.structs.replace(config, server=server)


def _models(raw: Mapping[str, object], place: Place) -> tuple[list[object], object]:
    """The models, ready for conversion, and `enable_mock`, from either form."""
    if "inference_engine" in raw:
        if "models" in raw:
            raise place.at("models").error("wanted models or inference_engine, got both")
        short = _table(raw["inference_engine"], place.at("inference_engine"))
        form = convert(ShortForm, short, place.at("inference_engine"))
        if form.enable_mock is not None and "enable_mock" in raw:
            raise place.at("enable_mock").error("is given twice, here and in inference_engine")
        mock = raw.get("enable_mock") if form.enable_mock is None else form.enable_mock
        return [_short_model(form, mock is True, place.at("inference_engine"))], mock
    models = raw.get("models", [])
    if not isinstance(models, list):
        raise place.at("models").wrong(models, "wanted a list of models")
    if not models:
        raise place.error("wanted models (or inference_engine), got neither")
    ready = [_model(entry, place.at("models").index(n)) for n, entry in enumerate(models)]
    return list(ready), raw.get("enable_mock")


def _short_model(form: ShortForm, is_mock: bool, place: Place) -> dict[str, object]:
    for key, value in (("endpoint", form.endpoint), ("tokenizer_path", form.tokenizer_path)):
        # Why: a mock needs neither, so that the shortest file that runs has two lines.
        if not value and not is_mock:
            raise place.error(f"the key '{key}' is missing")
    model: dict[str, object] = {
        "name": "",
        "engine": {"plugin": "remote", "settings": {"endpoint": form.endpoint or ""}},
    }
    if form.tokenizer_path:
        model["tokenizer"] = {"plugin": "hf", "settings": {"path": form.tokenizer_path}}
        model["checkpoint"] = _folder(form.tokenizer_path)
    return model


def _model(entry: object, place: Place) -> dict[str, object]:
    raw = _table(entry, place)
    model = dict(raw)
    for key in USES:
        if raw.get(key) is not None:
            model[key] = _use(raw[key], PATHS.get(key), place.at(key))
    if "dialect" in raw:
        model["dialect"] = _bare(raw["dialect"], place.at("dialect"))
    tokenizer = raw.get("tokenizer")
    if isinstance(tokenizer, str) and _is_path(tokenizer):
        model.setdefault("checkpoint", _folder(tokenizer))
    return model


def _use(value: object, reader: str | None, place: Place) -> dict[str, object]:
    """A name, a path (where `reader` says which plugin reads it), or a table, as a PluginUse."""
    if isinstance(value, Mapping):
        settings = dict(value)
        if "plugin" not in settings:
            raise place.error("the key 'plugin' is missing")
        plugin = settings.pop("plugin")
        if not isinstance(plugin, str) or not PLUGIN_NAME.fullmatch(plugin):
            raise place.at("plugin").wrong(plugin, "wanted a plugin's name")
        return {"plugin": plugin, "settings": settings}
    if isinstance(value, str) and reader and _is_path(value):
        return {"plugin": reader, "settings": {"path": value}}
    if isinstance(value, str) and PLUGIN_NAME.fullmatch(value):
        return {"plugin": value}
    path = ", a path" if reader else ""
    raise place.wrong(value, f"wanted a plugin's name{path} or a table with 'plugin'")


def _bare(value: object, place: Place) -> object:
    """A dialect: the table form is allowed, but there are no settings for it."""
    if not isinstance(value, Mapping):
        return value
    use = _use(value, None, place)
    settings = use["settings"]
    if isinstance(settings, dict):
        for key, entry in settings.items():
            raise place.at(key).wrong(entry, "a dialect has no settings")
    return use["plugin"]


def _cache(value: object, place: Place) -> dict[str, object]:
    """`cache:` what CacheConfig does not know belongs to the store plugin."""
    raw = _table(value, place)
    own = [key for key in keys_of(CacheConfig) if key != "settings"]
    rest = {key: entry for key, entry in raw.items() if key not in own}
    return {key: raw[key] for key in own if key in raw} | {"settings": rest}


def _table(value: object, place: Place) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise place.wrong(value, "wanted a table")
    return value


def _is_path(text: str) -> bool:
    return "/" in text or "\\" in text or text.endswith((".json", ".jinja"))


def _folder(path: str) -> str:
    """A tokenizer's folder: a path without .json is one itself."""
    return str(PurePath(path).parent) if path.endswith(".json") else path


def uses(model: ModelConfig) -> tuple[tuple[str, str, PluginUse], ...]:
    """(kind, key, use) of every plugin that a model names, its dialect apart."""
    found = (
        ("engine", "engine", model.engine),
        ("tokenizer", "tokenizer", model.tokenizer),
        ("template", "chat_template", model.chat_template),
        ("parser", "parser", model.parser),
    )
    return tuple((kind, key, use) for kind, key, use in found if use is not None)
