"""Builds one architecture's artefact and prints what each kernel takes."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from tokenwire.kernels.aot.arch import arch_name, target_of
from tokenwire.kernels.aot.artefact import default_folder, write
from tokenwire.kernels.aot.build import Built, build, cache_at
from tokenwire.kernels.ops import FOLDERS

__all__ = ("build_artefact",)


def build_artefact(
    arch: str, *, opt_level: int, output: Path | None = None, folders: Sequence[str] = ()
) -> int:
    """Compiles, prints, gates and writes -> 0, or 1 where a gate fails: nothing is then written.
    Raises ValueError for an architecture or folder that is none."""
    capability = target_of(arch)
    for folder in folders:
        if folder not in FOLDERS:
            raise ValueError(f"no op lies in '{folder}'; the folders are: {', '.join(FOLDERS)}")
    print(f"{arch_name(capability)}, ptxas at level {opt_level}")
    print(f"  {'kernel':<26} {'launch':<28} registers spilled  shared warps")
    with tempfile.TemporaryDirectory() as cache, cache_at(Path(cache), optimised=opt_level > 0):
        built = []
        for one in build(capability, folders=folders or FOLDERS):
            built.append(one)
            print(_line(one), flush=True)
        faults = sum(bool(one.faults) for one in built)
        # Why not at level 0: unoptimised kernels spill, and are for debugging alone.
        if faults and opt_level > 0:
            print(f"{faults} of {len(built)} kernels fail a gate; no artefact was written")
            return 1
        place = output or default_folder(capability, opt_level=opt_level)
        manifest = write(place, built, capability, opt_level=opt_level)
    print(f"{len(built)} kernels in {manifest.parent}")
    return 0


def _line(one: Built) -> str:
    taken = f"{one.registers:>9} {one.spilled:>7} {one.compiled.shared:>7} {one.compiled.warps:>5}"
    faults = "".join(f"  FAILS: {fault}" for fault in one.faults)
    return f"  {one.compiled.name:<26} {one.specialisation:<28} {taken}{faults}"
