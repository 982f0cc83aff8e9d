"""`plugins` and `version`: what is installed. `fetch`: what can be."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
from cyclopts import App
from msgspec import Struct
from rich.table import Table

from tokenwire.core import __version__
from tokenwire.core.cli.shell import Shell
from tokenwire.core.host import KINDS, Host

__all__ = ("PluginRow", "add", "rows")

NO_FACTORY = "register_commands", "host_started", "host_stopping"


class PluginRow(Struct, frozen=True):
    """One thing that a plugin brings. `owner` is the plugin; `version` its distribution's."""

    kind: str
    name: str
    owner: str
    distribution: str
    version: str
    summary: str
    settings: tuple[str, ...]
    """"key: type = default" each."""


def add(app: App, shell: Shell) -> None:
    """Adds `plugins`, `version` and `fetch`."""

    @app.command
    def plugins(*, json: bool = False) -> int:
        """List what plugins bring: kind, name, owner, version, settings.

        Parameters
        ----------
        json
            As JSON, one list of objects.
        """
        found = rows(shell.host())
        if json:
            shell.say(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
            return 0
        table = Table("kind", "name", "owner", "version", "settings", box=None, pad_edge=False)
        for row in found:
            version = f"{row.distribution} {row.version}".strip()
            table.add_row(row.kind, row.name, row.owner, version, "\n".join(row.settings))
        shell.out.print(table, markup=False, highlight=False)
        return 0

    @app.command
    def version() -> int:
        """Print the version."""
        shell.say(__version__)
        return 0

    @app.command
    def fetch(name: str, *, into: Path = Path("models")) -> int:
        """Fetch a model's small files (tokenizer, chat template), as `smollm2`.

        Parameters
        ----------
        name
            What to fetch.
        into
            The folder that gets a folder of that name.
        """
        from tokenwire.core.fetch import fetch as fetch_files

        shell.say(str(fetch_files(name, into / name)))
        return 0


def rows(host: Host) -> tuple[PluginRow, ...]:
    """Every factory by kind, then the plugins that only have other hooks."""
    plugins = {plugin.name: plugin for plugin in host.plugins}
    found: list[PluginRow] = []
    for kind in KINDS:
        registry = host.registry(kind)
        for name, factory in registry.items():
            owner = plugins[registry.owner(name)]
            found.append(
                PluginRow(
                    kind,
                    name,
                    owner.name,
                    owner.distribution,
                    owner.version,
                    factory.summary,
                    _settings(factory.settings),
                )
            )
    for plugin in host.plugins:
        found += [
            PluginRow("hook", hook, plugin.name, plugin.distribution, plugin.version, "", ())
            for hook in host.hooks(plugin)
            if hook in NO_FACTORY
        ]
    return tuple(found)


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
