"""A configuration against the plugins that are installed: names and settings. Builds nothing."""

from __future__ import annotations

from tokenwire.core.config import CacheConfig, Config, ModelConfig, PluginUse
from tokenwire.core.config_file import uses
from tokenwire.core.dialect_names import ALIASES, pick
from tokenwire.core.errors import ConfigError
from tokenwire.core.host import Host
from tokenwire.core.settings import Place, keys_of, nearest

__all__ = ("check",)

PROCESS_WIDE = ("codec", "transfer", "router", "guard", "observer")


def check(config: Config, host: Host, file: str) -> tuple[str, ...]:
    """Warnings, for what may come later: an engine that is not installed yet.

    Raises ConfigError (file, key, value, nearest) for a plugin or a setting that does not exist.
    """
    place = Place(file)
    warnings: list[str] = []
    for n, model in enumerate(config.models):
        warnings += _check_model(model, host, place.at("models").index(n))
    _check_cache(config.cache, host, place.at("cache"))
    for name, settings in config.plugins.items():
        here = place.at("plugins").at(name)
        kinds = [kind for kind in PROCESS_WIDE if name in host.registry(kind)]
        if not kinds:
            names = [known for kind in PROCESS_WIDE for known in host.registry(kind)]
            raise here.error("no such plugin takes settings here" + nearest(name, names))
        for kind in kinds:
            host.registry(kind).settings(name, settings, here)
    return tuple(warnings)


def _check_model(model: ModelConfig, host: Host, place: Place) -> list[str]:
    warnings: list[str] = []
    _check_dialect(model.dialect, host, place.at("dialect"))
    for kind, key, use in uses(model):
        here = place.at(key)
        registry = host.registry(kind)
        if use.plugin in registry:
            registry.settings(use.plugin, use.settings, here)
            continue
        reason = f"no {kind} '{use.plugin}' is installed{nearest(use.plugin, registry)}"
        if kind != "engine":
            raise here.wrong(use.plugin, reason)
        # Why no error: an engine may be installed later; until then its calls are answered 503.
        warnings.append(str(here.error(reason)))
    _check_reasoning(model, host, place)
    return warnings


def _check_reasoning(model: ModelConfig, host: Host, place: Place) -> None:
    """As far as it is known what will read it: the parser that is named, or that has the dialect's
    name; of the dialect `auto`, any parser that could be chosen."""
    dialect, _ = pick(model.dialect, installed=frozenset(host.dialects))
    use = model.parser or PluginUse(dialect)
    names = [use.plugin] if use.plugin in host.parsers else []
    if model.parser is None and model.dialect == "auto":
        names = list(host.parsers)
    refused: ConfigError | None = None
    for name in names:
        if "reasoning" not in keys_of(host.parsers[name].settings):
            continue
        try:
            values = {"reasoning": model.reasoning, **use.settings}
            host.parsers.settings(name, values, place)
        except ConfigError as error:
            refused = error
        else:
            return
    if refused is not None:
        raise refused


def _check_dialect(dialect: str, host: Host, place: Place) -> None:
    if dialect == "auto":
        return
    name, _ = pick(dialect, installed=frozenset(host.dialects))
    if name not in host.dialects:
        known = nearest(dialect, (*host.dialects, *ALIASES))
        raise place.wrong(dialect, f"no dialect '{dialect}' is installed{known}")


def _check_cache(cache: CacheConfig, host: Host, place: Place) -> None:
    if cache.type not in host.stores:
        reason = f"no store '{cache.type}' is installed{nearest(cache.type, host.stores)}"
        raise place.at("type").wrong(cache.type, reason)
    own = [key for key in keys_of(CacheConfig) if key != "settings"]
    known = keys_of(host.stores[cache.type].settings)
    for key, value in cache.settings.items():
        if key not in known:
            hint = nearest(key, (*known, *own))
            raise place.at(key).wrong(value, f"store '{cache.type}' has no such key{hint}")
    host.stores.settings(cache.type, cache.settings, place)
