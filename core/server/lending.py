"""What workers may not each have: an engine on a device, a store in one process's memory."""

from __future__ import annotations

from tokenwire.core.config import Config
from tokenwire.core.errors import ConfigError
from tokenwire.core.host import Host
from tokenwire.core.ports.store import Store
from tokenwire.core.settings import Place

__all__ = ("check_workers", "open_process_store")


def check_workers(config: Config, host: Host) -> None:
    """Raises ConfigError where several processes would each build an engine that holds a device."""
    for model in config.models:
        name = model.engine.plugin
        if name in host.engines and host.engines.find(name).device:
            raise ConfigError(
                f"server.workers = {config.server.workers}: model '{model.name}' is on the engine"
                f" '{name}', which holds a device and cannot be in several processes: set"
                " server.workers: 1"
            )


async def open_process_store(config: Config, host: Host) -> Store | None:
    """The configured store, where it lives in one process and so must be lent to the workers."""
    store: Store = host.build(
        "store", config.cache.type, config.cache.settings, where=Place("", "cache")
    )
    if store.durability == "process":
        return store
    await store.close()
    return None
