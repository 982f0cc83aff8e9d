"""Finds plugins: entry points of the group `tokenwire`, or modules that are given. Asks no hook."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType

from msgspec import Struct

from tokenwire.core.errors import PluginError
from tokenwire.core.registry import said
from tokenwire.core.settings import nearest

__all__ = ("GROUP", "Plugin", "given", "installed")

GROUP = "tokenwire"
ONLY = "TOKENWIRE_PLUGINS"
WITHOUT = "TOKENWIRE_DISABLE"


class Plugin(Struct, frozen=True):
    """A module with hook implementations. Its name is what messages call the owner."""

    name: str
    module: ModuleType
    distribution: str = ""
    """"" for a module that was given."""
    version: str = ""


def installed(environ: Mapping[str, str]) -> tuple[Plugin, ...]:
    """Installed plugins by name, or those that TOKENWIRE_PLUGINS lists, in its order; without those
    in TOKENWIRE_DISABLE, which are not even imported. Raises PluginError that names the plugin."""
    found = _by_name()
    names = _words(environ.get(ONLY, "")) or sorted(found)
    blocked = _words(environ.get(WITHOUT, ""))
    for variable, listed in ((ONLY, names), (WITHOUT, blocked)):
        for name in listed:
            if name not in found:
                raise PluginError(
                    f"{variable} names '{name}', which is not installed{nearest(name, found)}"
                )
    return tuple(_load(found[name]) for name in names if name not in blocked)


def given(plugins: Mapping[str, ModuleType]) -> tuple[Plugin, ...]:
    """Modules by name, as tests and embedders give them."""
    return tuple(
        Plugin(name, module, version=str(getattr(module, "__version__", "")))
        for name, module in plugins.items()
    )


def _by_name() -> dict[str, EntryPoint]:
    found: dict[str, EntryPoint] = {}
    for point in entry_points(group=GROUP):
        known = found.setdefault(point.name, point)
        if known.value != point.value:
            raise PluginError(
                f"two distributions have a plugin '{point.name}': {_origin(known)} and "
                f"{_origin(point)}: uninstall one"
            )
    return found


def _load(point: EntryPoint) -> Plugin:
    try:
        module = point.load()
    # Why SystemExit: a plugin that leaves at import must not end the server without a word.
    except (Exception, SystemExit) as error:
        raise PluginError(
            f"{point.name}: cannot be imported from {point.value} ({_origin(point)}): "
            f"{said(error)}: repair it, or start with {WITHOUT}={point.name}"
        ) from error
    distribution = point.dist
    if distribution is None:
        return Plugin(point.name, module)
    return Plugin(point.name, module, distribution.name, distribution.version)


def _origin(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else "unknown distribution"


def _words(text: str) -> list[str]:
    return list(dict.fromkeys(text.replace(",", " ").split()))
