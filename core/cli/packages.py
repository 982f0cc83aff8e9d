"""Commands that packages bring: entry points of the group `tokenwire.commands`. Imports none of
them before it is called.

Such a command parses its own arguments: a function (list of arguments) -> exit code. Plugins that
want commands of the same make as the built-in ones use the hook `register_commands`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated

from cyclopts import App, Parameter

from tokenwire.core.cli.shell import Shell
from tokenwire.core.registry import said

__all__ = ("GROUP", "add")

GROUP = "tokenwire.commands"


def add(app: App, shell: Shell) -> None:
    """Adds what is installed. A name that is taken is left out, with a warning."""
    taken = set(app)
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        if point.name in taken:
            shell.warn(f"{_origin(point)}: there is a command '{point.name}' already: left out")
            continue
        taken.add(point.name)
        sub = App(
            name=point.name,
            help=f"A command of {_origin(point)}: `tokenwire {point.name} --help`.",
            # Why none: its own parser answers --help.
            help_flags=[],
            version_flags=[],
        )
        sub.default(_command(point, shell))
        app.command(sub)


def _command(point: EntryPoint, shell: Shell) -> Callable[..., int]:
    def run(*arguments: Annotated[str, Parameter(allow_leading_hyphen=True)]) -> int:
        try:
            function = point.load()
        except Exception as error:
            shell.complain(
                f"{point.name}: cannot be imported from {point.value} ({_origin(point)}): "
                f"{said(error)}"
            )
            return 2
        try:
            code = function(list(arguments))
        except SystemExit as left:  # argparse leaves so, after it has said why
            code = left.code if isinstance(left.code, int) else int(left.code is not None)
        return code if isinstance(code, int) else 0

    return run


def _origin(point: EntryPoint) -> str:
    return point.dist.name if point.dist else point.value
