"""A progress bar on stderr while weights load; nothing where stderr is no terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

__all__ = ("bar",)


@contextmanager
def bar(
    name: str, told: Callable[[int, int], None] | None = None
) -> Iterator[Callable[[int, int], None] | None]:
    """Gives what to call with (bytes done, bytes in all): `told`, where there is one."""
    if told is not None:
        yield told
        return
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = TextColumn(f"loading {name}"), BarColumn(), DownloadColumn(), TransferSpeedColumn()
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(name, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
