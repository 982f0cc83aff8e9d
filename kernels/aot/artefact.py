"""A folder of compiled kernels with a manifest; loading puts them where Triton looks for them.

Compiles nothing. What does not match this machine is left out with a warning that names it, and
Triton then compiles at the first launch, as without an artefact.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import make_backend
from triton.runtime.cache import get_cache_manager

from tokenwire.kernels.aot.arch import arch_name
from tokenwire.kernels.aot.build import Built

__all__ = ("MANIFEST", "Loaded", "default_folder", "identity", "load", "write")

MANIFEST = "manifest.json"
FORMAT = 1
SOURCES = Path(__file__).parents[1]
KERNEL = b"triton.jit"
"""What a file with a kernel says."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a start line says of it."""

    kernels: int
    """That Triton will find compiled."""
    warnings: tuple[str, ...] = ()
    """Whole sentences; with one, no kernel was taken."""


def default_folder(
    capability: tuple[int, int], *, opt_level: int = 3, environ: Mapping[str, str] = os.environ
) -> Path:
    """Where the command writes and, for level 3, the engine looks when nothing else is said."""
    base = environ.get("XDG_CACHE_HOME") or "~/.cache"
    name = arch_name(capability) + ("" if opt_level == 3 else f"-O{opt_level}")
    return Path(base).expanduser() / "tokenwire" / "kernels" / name


def identity(capability: tuple[int, int], *, opt_level: int = 3) -> dict[str, str]:
    """All that a compiled kernel depends on beside its launch, each in words to compare."""
    backend = make_backend(GPUTarget("cuda", capability[0] * 10 + capability[1], 32))
    return {
        "architecture": arch_name(capability),
        "opt level": str(opt_level),
        "Triton": triton.__version__,
        "build of Triton": _triton_build(),
        "ptxas": _first_release(str(backend.hash())),
        "kernel sources": _sources(),
        "fused multiply-add": os.environ.get("TRITON_DEFAULT_FP_FUSION", ""),
    }


def write(
    folder: Path, built: Iterable[Built], capability: tuple[int, int], *, opt_level: int = 3
) -> Path:
    """Writes anew what Triton's cache has of `built` -> the manifest."""
    fresh = folder.with_name(folder.name + ".new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    kernels = []
    for one in built:
        place = fresh / one.compiled.key
        place.mkdir()
        for name, source in one.compiled.files().items():
            if name.endswith((".cubin", ".json")):
                shutil.copyfile(source, place / name)
        kernels.append(_row(one))
    manifest = {"format": FORMAT, **identity(capability, opt_level=opt_level), "kernels": kernels}
    (fresh / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")
    shutil.rmtree(folder, ignore_errors=True)
    fresh.rename(folder)
    return folder / MANIFEST


def load(folder: Path, capability: tuple[int, int]) -> Loaded:
    """Fills Triton's cache from the artefact of this machine's identity. Never raises for a folder
    that is missing, broken or of another machine: its warning says what to do."""
    again = f"kernels are compiled at their first use; `{_command(capability)}` builds them"
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text())
        rows = manifest["kernels"]
    except FileNotFoundError:
        return Loaded(0, (f"{folder} has no built kernels: {again}",))
    except (OSError, ValueError, LookupError, TypeError) as error:
        return Loaded(0, (f"{folder / MANIFEST} cannot be read ({error}): {again}",))
    apart = _differences(manifest, {"format": FORMAT, **identity(capability)})
    if apart:
        return Loaded(0, (f"the kernels in {folder} were built for {apart}: {again}",))
    try:
        for row in rows:
            _fill(folder / row["key"], row["key"], row["kernel"])
    except (OSError, LookupError) as error:
        return Loaded(0, (f"{folder} is incomplete ({error}): {again}",))
    return Loaded(len(rows))


def _fill(source: Path, key: str, name: str) -> None:
    """One kernel into Triton's cache, where it is not already there."""
    cache = get_cache_manager(key)
    group = f"{name}.json"
    if cache.get_group(group):
        return
    files = {each: (source / each).read_bytes() for each in (group, f"{name}.cubin")}
    placed = {each: cache.put(data, each) for each, data in files.items()}
    cache.put_group(group, placed)


def _row(one: Built) -> dict[str, Any]:
    return {
        "op": one.folder,
        "specialisation": one.specialisation,
        "kernel": one.compiled.name,
        "key": one.compiled.key,
        "registers": one.registers,
        "spilled": one.spilled,
        "shared": one.compiled.shared,
        "warps": one.compiled.warps,
    }


def _differences(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> str:
    """ "another Triton (3.8.0, here 3.9.0)": long hashes are named without their digits."""
    apart = [name for name, value in ours.items() if theirs.get(name) != value]
    return "; ".join(f"another {name}{_both(theirs.get(name), ours[name])}" for name in apart)


def _both(theirs: object, ours: object) -> str:
    longest = max(len(str(theirs)), len(str(ours)))
    return "" if longest > 20 else f" ({theirs}, here {ours})"


def _command(capability: tuple[int, int]) -> str:
    return f"tokenwire kernels build --arch {arch_name(capability)}"


def _sources() -> str:
    """Hash of every module with a kernel, which holds its launch too."""
    digest = hashlib.sha256()
    for path in sorted(SOURCES.glob("*/*.py")):
        data = path.read_bytes()
        if KERNEL in data and path.parent != Path(__file__).parent:
            digest.update(path.relative_to(SOURCES).as_posix().encode() + b"\0" + data)
    return digest.hexdigest()


def _triton_build() -> str:
    """Triton's hash of itself: two wheels of one version differ by Python and platform."""
    try:
        from triton.runtime.cache import triton_key
    except ImportError:
        from triton.compiler.compiler import triton_key
    return hashlib.sha256(str(triton_key()).encode()).hexdigest()


def _first_release(text: str) -> str:
    """ "release 13.4, V13.4.19" out of what ptxas says of itself."""
    found = [line for line in text.splitlines() if "release" in line]
    return found[0].partition("release ")[2] if found else text
