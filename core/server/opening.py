"""Opens the real thing: a host with all plugins, and the deployment of a configuration."""

from __future__ import annotations

from collections.abc import Sequence

from tokenwire.core.config import Config
from tokenwire.core.deployment import Deployment
from tokenwire.core.host import Host
from tokenwire.core.plugin_rows import plugin_rows
from tokenwire.core.ports.observer import Observer
from tokenwire.core.ports.store import Store
from tokenwire.core.server.backend import Opened

__all__ = ("open_deployment",)


async def open_deployment(
    config: Config, store: Store | None, observers: Sequence[Observer]
) -> Opened:
    """An `Opener`. Raises ConfigError and PluginError in words."""
    host = Host(replaces=config.replaces)
    host.started()
    try:
        deployment = await Deployment.start(config, host, store=store, observers=observers)
    except BaseException:
        host.stopping()
        raise
    return Opened(deployment, plugin_rows(host), host.stopping)
