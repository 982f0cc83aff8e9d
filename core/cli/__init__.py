"""The command line: `main` parses, runs one command and gives its exit code. Serves nothing itself.

0: done; 1: it was tried and failed; 2: wrong usage, configuration or plugin, said in one sentence
on stderr. Only bugs show a traceback.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError, Parameter

from tokenwire.core import __version__
from tokenwire.core.cli import calling, conforming, explaining, listing, packages, planning, serving
from tokenwire.core.cli.shell import OutputError, Shell
from tokenwire.core.errors import TokenwireError

__all__ = ("command_line", "main")


def command_line(shell: Shell) -> App:
    """The built-in commands and those of packages; plugins add theirs by `register_commands`."""
    app = App(
        name="tokenwire",
        help="Serves language models behind every protocol their clients speak.",
        version=__version__,
        console=shell.out,
        error_console=shell.err,
        default_parameter=Parameter(negative=""),
        result_action="return_value",
    )
    for commands in (serving, listing, calling, explaining, conforming, planning, packages):
        commands.add(app, shell)
    return app


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `tokenwire ARGUMENTS` (None: this process's) -> its exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    _take_any_text()
    shell = Shell(os.environ)
    try:
        code = _run(given, shell)
        shell.out.file.flush()
    except OutputError as error:
        shell.complain(str(error))
        code = 1
    except BrokenPipeError:
        code = 1
    if code != 0:
        _drop_the_rest()
    return code


def _run(arguments: list[str], shell: Shell) -> int:
    for argument in arguments:
        if not _is_unicode(argument):
            shell.complain(f"the argument {argument!r} is not UTF-8")
            return 2
    app = command_line(shell)
    try:
        shell.host().add_commands(app)
    except TokenwireError as error:
        # Why go on: `version` and --help need no plugin; what does, ends with this.
        shell.warn(str(error))
    try:
        code = app(arguments, exit_on_error=False, print_error=False)
    except (CycloptsError, TokenwireError) as error:
        shell.complain(str(error))
        return 2
    except KeyboardInterrupt:
        return 130
    return code if isinstance(code, int) else 0


def _is_unicode(text: str) -> bool:
    """Whether it is text: bytes that are not UTF-8 come as lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _take_any_text() -> None:
    """What a stream's encoding lacks is escaped: no answer and no name may end a command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _drop_the_rest() -> None:
    """Forget what a stream still holds and cannot write, or Python would complain at its end."""
    for stream in (sys.stdout, sys.stderr):
        if stream is None:
            continue
        try:
            stream.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
