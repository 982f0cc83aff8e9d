"""Names of GPU architectures: "sm_90a" and its capability, its limit. Knows no kernel."""

from __future__ import annotations

import re

__all__ = ("arch_name", "capability_of", "shared_limit", "target_of")

NAME = re.compile(r"sm_(\d{1,2})(\d)[af]?")
KNOWN = (80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121)
"""What ptxas lists and has bfloat16: for any other, LLVM ends the process in place of an error."""
SHARED_KIB = {(8, 0): 163, (8, 7): 163, (9, 0): 227, (10, 0): 227, (10, 3): 227}
"""Shared memory that a block may have, by capability (CUDA's table of technical specifications)."""
SHARED_KIB_ELSE = 99
SPECIFIC = (9, 0)
"""From here on Triton compiles for the architecture alone, with its own instructions."""


def capability_of(name: str) -> tuple[int, int]:
    """ "sm_90", "sm_90a" -> (9, 0). Raises ValueError."""
    found = NAME.fullmatch(name)
    if found is None:
        raise ValueError(f"an architecture is sm_80, sm_90a, sm_100a or alike, not '{name}'")
    return int(found[1]), int(found[2])


def target_of(name: str) -> tuple[int, int]:
    """The capability of one that kernels can be built for. Raises ValueError."""
    major, minor = capability_of(name)
    if 10 * major + minor not in KNOWN:
        names = ", ".join(f"sm_{number}" for number in KNOWN)
        raise ValueError(f"no kernels can be built for '{name}': wanted one of {names}")
    return major, minor


def arch_name(capability: tuple[int, int]) -> str:
    """(9, 0) -> "sm_90a": what Triton compiles for on such a GPU."""
    major, minor = capability
    return f"sm_{major}{minor}{'a' if capability >= SPECIFIC else ''}"


def shared_limit(capability: tuple[int, int]) -> int:
    """Bytes."""
    return SHARED_KIB.get(capability, SHARED_KIB_ELSE) * 1024
