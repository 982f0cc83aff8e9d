"""Compiles the declared launches of the ops for one architecture and measures what came out.

Writes no artefact and judges by gates alone: no spills, shared memory within the GPU's limit, and
tensor cores where they are promised.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import triton

from tokenwire.kernels.aot.arch import shared_limit
from tokenwire.kernels.aot.offline import Compiled, described_gpu, jit_functions
from tokenwire.kernels.aot.specialisation import Specialisation
from tokenwire.kernels.ops import FOLDERS

__all__ = ("Built", "build", "cache_at", "faults_of", "triton_modules")

USAGE = re.compile(r"REG:(\d+) STACK:(\d+) SHARED:\d+ LOCAL:(\d+)")
TENSOR_CORES = {9: "wgmma", 10: "tcgen05"}
"""Capability's major number -> the instruction that reads operands from shared memory."""


@dataclass(frozen=True, slots=True)
class Built:
    """A kernel for one architecture, with what it takes."""

    folder: str
    """The op's."""
    specialisation: str
    compiled: Compiled
    registers: int
    """Of a thread."""
    spilled: int
    """Bytes of a thread's stack: registers that did not fit."""
    faults: tuple[str, ...]
    """Gates that it fails, in words."""


def triton_modules(folders: Sequence[str] = FOLDERS) -> dict[str, ModuleType]:
    """Op folder -> its Triton module, for those that have one."""
    names = {folder: f"tokenwire.kernels.{folder}.triton" for folder in folders}
    return {folder: import_module(name) for folder, name in names.items() if find_spec(name)}


def build(
    capability: tuple[int, int],
    *,
    folders: Sequence[str] = FOLDERS,
    gated_only: bool = False,
) -> Iterator[Built]:
    """Compiles into Triton's cache. A kernel that several launches need comes once."""
    modules = triton_modules(folders)
    # Why all: an op may launch another's kernel, and each must forget the described GPU.
    kernels = [one for module in triton_modules().values() for one in jit_functions(module)]
    seen: set[str] = set()
    for folder, module in modules.items():
        for specialisation in module.SPECIALISATIONS:
            if capability < specialisation.minimum or (gated_only and not specialisation.gated):
                continue
            with described_gpu(capability, kernels) as compiled:
                specialisation.launch()
            for one in compiled:
                if one.key not in seen:
                    seen.add(one.key)
                    yield _measured(folder, specialisation, one, capability)


@contextmanager
def cache_at(folder: Path, *, optimised: bool = True) -> Iterator[None]:
    """Triton's cache lies in `folder` while it holds; `optimised` is ptxas's level 3, else 0."""
    with triton.knobs.cache.scope(), triton.knobs.nvidia.scope():
        triton.knobs.cache.dir = str(folder)
        triton.knobs.nvidia.disable_ptxas_opt = not optimised
        yield


def faults_of(
    compiled: Compiled,
    spilled: int,
    capability: tuple[int, int],
    *,
    instruction: str = "",
    ptx: str = "",
) -> tuple[str, ...]:
    """The gates. `instruction` is promised to stand in `ptx`; "" promises none."""
    faults = []
    if spilled:
        faults.append(f"spills {spilled} bytes a thread")
    if compiled.shared > shared_limit(capability):
        limit = shared_limit(capability)
        faults.append(f"needs {compiled.shared} bytes of shared memory of {limit}")
    if instruction and instruction not in ptx:
        faults.append(f"promises {instruction} and has none")
    return tuple(faults)


def _measured(
    folder: str, specialisation: Specialisation, compiled: Compiled, capability: tuple[int, int]
) -> Built:
    files = compiled.files()
    registers, spilled = _usage(files[f"{compiled.name}.cubin"])
    instruction = TENSOR_CORES.get(capability[0], "") if specialisation.wgmma else ""
    if not compiled.name.startswith(folder):
        instruction = ""  # a kernel of another op, launched on the way
    ptx = files[f"{compiled.name}.ptx"].read_text() if instruction else ""
    faults = faults_of(compiled, spilled, capability, instruction=instruction, ptx=ptx)
    return Built(folder, specialisation.name, compiled, registers, spilled, faults)


def _usage(cubin: Path) -> tuple[int, int]:
    """(registers, stack and local bytes) of a thread, as the cuobjdump of Triton's wheel says."""
    command = [triton.knobs.nvidia.cuobjdump.path, "-res-usage", str(cubin)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = USAGE.search(done.stdout)
    if found is None:
        raise RuntimeError(f"cuobjdump says nothing of {cubin.name}'s registers: {done.stdout!r}")
    return int(found[1]), int(found[2]) + int(found[3])
