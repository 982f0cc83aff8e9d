"""Compiles one C++ file for this machine's CPU, once, and loads it. Knows no kernel.

The library is kept in the user's cache folder under a name made of everything that shapes it
(source, compiler, flags, CPU), so that a stale one is never loaded; where no folder can be written
it is loaded from a temporary one.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path

__all__ = ("compiler", "compiler_reason", "library")

FLAGS = ("-std=c++17", "-O3", "-march=native", "-fno-math-errno", "-fPIC", "-shared", "-fopenmp")
SECONDS = 120


def compiler() -> str:
    """The path of a C++ compiler ($CXX, else c++, g++ or clang++), or ""."""
    names = [os.environ.get("CXX", ""), "c++", "g++", "clang++"]
    return next((path for name in names if name and (path := shutil.which(name))), "")


@functools.lru_cache(maxsize=8)
def compiler_reason(source: Path) -> str:
    """Why `library(source)` cannot be had here, or "". Compiles it."""
    if not compiler():
        return "no C++ compiler: install g++ or set CXX"
    try:
        library(source)
    except (OSError, subprocess.SubprocessError) as error:
        return f"{source.name} does not compile here: {_last_line(error)}"
    return ""


@functools.lru_cache(maxsize=8)
def library(source: Path) -> ctypes.CDLL:
    """The compiled file. Raises OSError or subprocess.SubprocessError where it cannot be made."""
    name = f"{source.stem}-{_key(source)}.so"
    try:
        return _loaded(source, _cache_folder() / name)
    except OSError as error:
        if error.errno is None:  # the loader's own, not the file system's
            raise
    with tempfile.TemporaryDirectory(prefix="tokenwire-kernels-") as folder:
        return _loaded(source, Path(folder) / name)


def _loaded(source: Path, path: Path) -> ctypes.CDLL:
    if not path.exists():
        _compile(source, path)
    return ctypes.CDLL(str(path))


def _compile(source: Path, path: Path) -> None:
    """Written under another name, then moved: a second process never loads half a library."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=path.parent, suffix=".so")
    os.close(handle)
    try:
        command = [compiler(), *FLAGS, str(source), "-o", draft]
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=SECONDS)
        os.replace(draft, path)
    finally:
        Path(draft).unlink(missing_ok=True)


def _cache_folder() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(home) / "tokenwire" / "kernels"


def _key(source: Path) -> str:
    """A digest of all that makes two libraries differ."""
    path = compiler()
    version = subprocess.run([path, "--version"], check=True, capture_output=True, timeout=SECONDS)
    digest = hashlib.sha256(source.read_bytes())
    for part in (path.encode(), version.stdout, " ".join(FLAGS).encode(), _cpu().encode()):
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()[:32]


def _cpu() -> str:
    """What -march=native sees: the CPU's name and features where the system tells them."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    told = [line for line in lines if line.startswith(("model name", "flags", "Features"))]
    return "\n".join([platform.machine(), platform.processor(), *sorted(set(told))])


def _last_line(error: Exception) -> str:
    told = error.stderr if isinstance(error, subprocess.CalledProcessError) else str(error)
    return (told or str(error)).strip().splitlines()[-1]
