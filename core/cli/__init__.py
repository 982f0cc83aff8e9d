"""The command line: `main` parses, runs one command and gives its exit code. Serves nothing itself.

0: done; 1: it was tried and failed; 2: wrong usage, configuration or plugin, said in one sentence
on stderr. Only bugs show a traceback.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError, Parameter

from tokenwire.core import __version__
from tokenwire.core.cli import calling, conforming, explaining, listing, serving
from tokenwire.core.cli.shell import Shell
from tokenwire.core.errors import TokenwireError

__all__ = ("command_line", "main")


def command_line(shell: Shell) -> App:
    """The built-in commands; plugins add theirs through `register_commands`."""
    app = App(
        name="tokenwire",
        help="Serves language models behind every protocol their clients speak.",
        version=__version__,
        console=shell.out,
        error_console=shell.err,
        default_parameter=Parameter(negative=""),
        result_action="return_value",
    )
    for commands in (serving, listing, calling, explaining, conforming):
        commands.add(app, shell)
    return app


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `tokenwire ARGUMENTS` (None: this process's) -> its exit code."""
    shell = Shell(os.environ)
    app = command_line(shell)
    try:
        shell.host().add_commands(app)
    except TokenwireError as error:
        # Why go on: `version` and --help need no plugin; what does, ends with this.
        shell.warn(str(error))
    try:
        code = app(
            sys.argv[1:] if arguments is None else list(arguments),
            exit_on_error=False,
            print_error=False,
        )
    except (CycloptsError, TokenwireError) as error:
        shell.complain(str(error))
        return 2
    except KeyboardInterrupt:
        return 130
    return code if isinstance(code, int) else 0
