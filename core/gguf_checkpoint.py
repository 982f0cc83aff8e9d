"""A GGUF file as a checkpoint: its small files are written out once, into the user's cache.

Knows no GGUF: gguf_files.py reads it. The weights stay where they are.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from tempfile import mkdtemp

from tokenwire.core.checkpoint import Checkpoint
from tokenwire.core.errors import ConfigError
from tokenwire.core.gguf_files import write_files

__all__ = ("checkpoint_at", "is_gguf")


def is_gguf(path: Path) -> bool:
    return path.suffix == ".gguf"


def checkpoint_at(path: Path, environ: Mapping[str, str] = os.environ) -> Checkpoint:
    """Of a model's folder, or of a GGUF file. Raises ConfigError for a GGUF that is not there, is
    broken, or is of a kind that is not known; a folder is not looked at."""
    if not is_gguf(path):
        return Checkpoint(path)
    if not path.is_file():
        raise ConfigError(f"checkpoint {str(path)!r}: wanted a GGUF file, there is none")
    found = path.stat()
    name = f"{path.resolve()}|{found.st_size}|{found.st_mtime_ns}"
    cache = _cache(environ) / "gguf"
    folder = cache / f"{path.stem}-{sha256(name.encode()).hexdigest()[:16]}"
    if not folder.is_dir():
        _write(path, cache, folder)
    return Checkpoint(folder, weights=path)


def _write(gguf: Path, cache: Path, folder: Path) -> None:
    """All files or none: others may start at the same time."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        made = Path(mkdtemp(dir=cache, prefix="new-"))
    except OSError as error:
        raise ConfigError(
            f"checkpoint {str(gguf)!r}: cannot write its tokenizer into {str(cache)!r} ({error}):"
            " set XDG_CACHE_HOME to a folder that can be written"
        ) from error
    try:
        write_files(gguf, made)
        try:
            made.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _cache(environ: Mapping[str, str]) -> Path:
    named = environ.get("XDG_CACHE_HOME")
    return (Path(named) if named else Path.home() / ".cache") / "tokenwire"
