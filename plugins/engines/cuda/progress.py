"""Who is told while weights load, and a bar on stderr; nothing where that is no terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from rich import progress as rich
from rich.console import Console

__all__ = ("Progress", "bar")

Progress: TypeAlias = Callable[[int, int], None]
"""Called with bytes read and bytes in all, from any thread but one at a time."""


@contextmanager
def bar(name: str, told: Progress | None = None) -> Iterator[Progress | None]:
    """Gives what to call: `told`, where there is one."""
    if told is not None:
        yield told
        return
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (
        rich.TextColumn(f"loading {name}"),
        rich.BarColumn(),
        rich.DownloadColumn(),
        rich.TransferSpeedColumn(),
    )
    with rich.Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(name, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
