"""A GPU that is only described: under it Triton compiles a launch as it would before running it.

Runs nothing on any device. Why a driver and no call of the compiler: Triton then derives the
signature, the options and the key of its cache itself, so that what is built here is what a server
on such a GPU looks for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, final

import triton
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.cache import get_cache_manager
from triton.runtime.jit import JITFunction

__all__ = ("Compiled", "described_gpu", "jit_functions")

LONGEST_NAME = 150
"""Triton cuts the names of its files there."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """A kernel that a launch needed."""

    name: str
    """Of the kernel and of its files."""
    key: str
    """Of Triton's cache: hexadecimal, from source, arguments, options, target and versions."""
    shared: int
    """Bytes of shared memory of a block."""
    warps: int

    def files(self) -> dict[str, Path]:
        """What Triton's cache has of it: file name -> place. Raises LookupError."""
        found = get_cache_manager(self.key).get_group(f"{self.name}.json")
        if not found:
            raise LookupError(f"{self.name}: Triton's cache has nothing under {self.key}")
        return {name: Path(place) for name, place in found.items()}


@final
class _Utils:
    """What Triton asks of a driver when it loads a kernel."""

    def get_device_properties(self, device: int) -> dict[str, int]:
        return {"max_shared_mem": 1 << 30, "multiprocessor_count": 132, "warpSize": 32}

    def load_binary(self, *arguments: Any) -> tuple[int, int, int, int, int]:
        return 1, 1, 0, 0, 1024

    def unload_module(self, module: int) -> None:
        return None


@final
class _Driver:
    """A CUDA driver for one target: compiles, and its launches do nothing."""

    def __init__(self, target: GPUTarget) -> None:
        self.target = target
        self.utils = _Utils()
        self.compiled: list[Compiled] = []

    def get_current_target(self) -> GPUTarget:
        return self.target

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0

    def launcher_cls(self, source: Any, metadata: Any) -> Any:
        name = source.name[:LONGEST_NAME]
        self.compiled.append(Compiled(name, metadata.hash, metadata.shared, metadata.num_warps))
        return _nothing


def _nothing(*arguments: Any) -> None:
    return None


@contextmanager
def described_gpu(
    capability: tuple[int, int], kernels: Iterable[JITFunction]
) -> Iterator[list[Compiled]]:
    """While it holds, launches of `kernels` compile for that capability and do nothing else. The
    list gets each kernel once, whether it was compiled or found in Triton's cache.

    Changes Triton's driver for this process: no launch on a real GPU may run meanwhile.
    """
    major, minor = capability
    standing_in = _Driver(GPUTarget("cuda", major * 10 + minor, 32))
    every = tuple(kernels)
    before = driver._active  # Why private: to ask for `active` without a GPU raises.
    _forget(every)
    driver.set_active(standing_in)
    try:
        yield standing_in.compiled
    finally:
        _forget(every)
        driver.set_active(before)


def _forget(kernels: Iterable[JITFunction]) -> None:
    """A kernel keeps what it compiled by the device's number, whatever the device is."""
    for kernel in kernels:
        kernel.device_caches.clear()


def jit_functions(module: ModuleType) -> tuple[JITFunction, ...]:
    """The kernels of a module. Raises RuntimeError under Triton's interpreter."""
    if triton.knobs.runtime.interpret:
        raise RuntimeError("TRITON_INTERPRET=1 leaves nothing to compile: start without it")
    return tuple(one for one in vars(module).values() if isinstance(one, JITFunction))
