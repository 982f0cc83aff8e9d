"""What commands share: two consoles, the environment, and the host, found when it is needed."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TextIO, final

from rich.console import Console

from tokenwire.core.errors import TokenwireError
from tokenwire.core.host import Host

__all__ = ("Shell",)

PIPE_WIDTH = 200


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
        self.err.print(f"tokenwire: warning: {text}", markup=False, highlight=False, soft_wrap=True)

    def complain(self, text: str) -> None:
        """A failure, in one sentence on stderr."""
        self.err.print(f"tokenwire: {text}", markup=False, highlight=False, soft_wrap=True)


def _console(stream: TextIO) -> Console:
    """Of the terminal's width; wide where nobody looks, so that tables are not wrapped."""
    return Console(file=stream, width=None if stream.isatty() else PIPE_WIDTH)
