"""Opens the real thing: a host with all plugins, and the deployment of a configuration."""

from __future__ import annotations

import msgspec

from tokenwire.core.config import Config
from tokenwire.core.deployment import Deployment
from tokenwire.core.errors import ConfigError
from tokenwire.core.host import KINDS, Host
from tokenwire.core.ports.store import Store
from tokenwire.core.server.backend import Opened, PluginRow
from tokenwire.core.settings import Place

__all__ = ("check_workers", "open_deployment", "open_process_store", "plugin_rows")


async def open_deployment(config: Config, store: Store | None) -> Opened:
    """An `Opener`. Raises ConfigError and PluginError in words."""
    host = Host(replaces=config.replaces)
    host.started()
    try:
        deployment = await Deployment.start(config, host, store=store)
    except BaseException:
        host.stopping()
        raise
    return Opened(deployment, plugin_rows(host), host.stopping)


def plugin_rows(host: Host) -> tuple[PluginRow, ...]:
    """All that is registered, by kind and name."""
    versions = {plugin.name: plugin.version for plugin in host.plugins}
    rows = []
    for kind in KINDS:
        registry = host.registry(kind)
        for name in sorted(registry):
            factory = registry[name]
            owner = registry.owner(name)
            rows.append(
                PluginRow(
                    kind=kind,
                    name=name,
                    owner=owner,
                    version=versions.get(owner, ""),
                    summary=factory.summary,
                    settings=msgspec.json.schema(factory.settings),
                )
            )
    return tuple(rows)


def check_workers(config: Config) -> None:
    """Raises ConfigError where several processes would each build an engine that holds a device."""
    host = Host(replaces=config.replaces)
    for model in config.models:
        name = model.engine.plugin
        if name in host.engines and host.engines.find(name).device:
            raise ConfigError(
                f"server.workers = {config.server.workers}: model '{model.name}' is on the engine"
                f" '{name}', which holds a device and cannot be in several processes: set"
                " server.workers: 1"
            )


async def open_process_store(config: Config) -> Store | None:
    """The configured store, where it lives in one process and so must be lent to the workers."""
    host = Host(replaces=config.replaces)
    store: Store = host.build(
        "store", config.cache.type, config.cache.settings, where=Place("", "cache")
    )
    if store.durability == "process":
        return store
    await store.close()
    return None
