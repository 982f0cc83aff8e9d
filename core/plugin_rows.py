"""What is installed, one row a thing: for `tokenwire plugins` and GET /plugins. Builds nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec
from msgspec import Struct

from tokenwire.core.discovery import Plugin
from tokenwire.core.host import KINDS, Host

__all__ = ("PluginRow", "plugin_rows")

NO_FACTORY = "register_commands", "host_started", "host_stopping"


class PluginRow(Struct, frozen=True):
    """One thing that a plugin brings. `owner` is the plugin; `version` its distribution's."""

    kind: str
    name: str
    owner: str
    distribution: str = ""
    version: str = ""
    summary: str = ""
    settings: tuple[str, ...] = ()
    """"key: type = default" each."""
    schema: Mapping[str, object] | None = None
    """The JSON Schema of the settings; None for a hook, which has none."""


def plugin_rows(host: Host) -> tuple[PluginRow, ...]:
    """Every factory by kind, then the hooks that register none."""
    return (*_factories(host), *_hooks(host))


def _factories(host: Host) -> Iterator[PluginRow]:
    plugins = {plugin.name: plugin for plugin in host.plugins}
    for kind in KINDS:
        registry = host.registry(kind)
        for name, factory in registry.items():
            row = _row(kind, name, plugins[registry.owner(name)])
            yield msgspec.structs.replace(
                row,
                summary=factory.summary,
                settings=_settings(factory.settings),
                schema=msgspec.json.schema(factory.settings),
            )


def _hooks(host: Host) -> Iterator[PluginRow]:
    for plugin in host.plugins:
        yield from (_row("hook", hook, plugin) for hook in host.hooks(plugin) if hook in NO_FACTORY)


def _row(kind: str, name: str, plugin: Plugin) -> PluginRow:
    return PluginRow(kind, name, plugin.name, plugin.distribution, plugin.version)


def _settings(settings: type[Struct]) -> tuple[str, ...]:
    """Of each key: name, type as written, and default."""
    described = []
    for field in msgspec.structs.fields(settings):
        kind = _kind(settings, field.name)
        default = "" if field.required else f" = {_default(field)}"
        described.append(f"{field.encode_name}: {kind}{default}")
    return tuple(described)


def _kind(settings: type[Struct], name: str) -> str:
    """The annotation as its author wrote it, without `Annotated`."""
    for base in settings.__mro__:
        written = vars(base).get("__annotations__", {}).get(name)
        if written is not None:
            text = written if isinstance(written, str) else getattr(written, "__name__", "")
            return re.sub(r"Annotated\[([^,]+), .*\]", r"\1", text)
    return ""


def _default(field: msgspec.structs.FieldInfo) -> object:
    if field.default is not msgspec.NODEFAULT:
        return repr(field.default)
    return f"{field.default_factory()!r}" if callable(field.default_factory) else "?"
