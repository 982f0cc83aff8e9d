"""Opens the real thing: a host with all plugins, and the deployment of a configuration."""

from __future__ import annotations

import msgspec

from tokenwire.core.config import Config
from tokenwire.core.deployment import Deployment
from tokenwire.core.host import KINDS, Host
from tokenwire.core.ports.store import Store
from tokenwire.core.server.backend import Opened, PluginRow

__all__ = ("open_deployment", "plugin_rows")


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
