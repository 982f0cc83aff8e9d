"""What commands share: two consoles, the environment, and the host, found when it is needed."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import IO, TextIO, cast, final

from rich.console import Console

from tokenwire.core.cli.painting import visible
from tokenwire.core.errors import TokenwireError
from tokenwire.core.host import Host

__all__ = ("OutputError", "Shell")

PIPE_WIDTH = 200


class OutputError(Exception):
    """stdout or stderr takes no more; its text says why."""


@final
class Shell:
    """One run of the command line."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.environ = environ
        self.out = _console(sys.stdout)
        self.err = _console(sys.stderr)
        self._host: Host | None = None
        self._failure: TokenwireError | None = None

    def host(self) -> Host:
        """The installed plugins; raises PluginError, the same each time."""
        if self._failure is not None:
            raise self._failure
        if self._host is None:
            try:
                self._host = Host(environ=self.environ)
            except TokenwireError as error:
                self._failure = error
                raise
        return self._host

    def say(self, text: str) -> None:
        """A line on stdout, as it is: nothing in it is markup."""
        self.out.print(text, markup=False, highlight=False, soft_wrap=True)

    def warn(self, text: str) -> None:
        self.complain(f"warning: {text}")

    def complain(self, text: str) -> None:
        """A failure, in one sentence on stderr. A server may have worded it: nothing in it steers
        the terminal."""
        line = visible(f"tokenwire: {text}")
        with suppress(OutputError):  # the exit code still says it
            self.err.print(line, markup=False, highlight=False, soft_wrap=True)


@final
class _Stream:
    """stdout or stderr as a file whose failures are told from all others: they are OutputErrors.
    A reader that has gone stays BrokenPipeError, which the console ends quietly."""

    def __init__(self, stream: TextIO | None) -> None:
        """None: it was closed when the process started."""
        self._stream = stream
        self.encoding = getattr(stream, "encoding", "utf-8")

    def isatty(self) -> bool:
        return self._stream is not None and self._stream.isatty()

    def fileno(self) -> int:
        return self._open().fileno()

    def write(self, text: str) -> int:
        try:
            return self._open().write(text)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise self._failed(error) from error

    def flush(self) -> None:
        try:
            self._open().flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise self._failed(error) from error

    def _open(self) -> TextIO:
        if self._stream is None:
            raise OutputError(f"the output cannot be written: {os.strerror(errno.EBADF)}")
        return self._stream

    def _failed(self, error: OSError) -> OutputError:
        return OutputError(f"the output cannot be written: {error.strerror or error}")


def _console(stream: TextIO | None) -> Console:
    """Of the terminal's width; wide where nobody looks, so that tables are not wrapped."""
    file = _Stream(stream)
    return Console(file=cast("IO[str]", file), width=None if file.isatty() else PIPE_WIDTH)
