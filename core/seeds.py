"""Seeds of a call's choices, derived so that every engine and every retry gets the same ones."""

from __future__ import annotations

__all__ = ("mix", "splitmix64")

MASK = (1 << 64) - 1


def splitmix64(state: int) -> int:
    """One step of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
    OOPSLA 2014; constants of Vigna's public-domain splitmix64.c). uint64 -> uint64."""
    z = (state + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def mix(seed: int, choice: int) -> int:
    """The seed of a choice: `seed` itself for 0, else SplitMix64 of seed + choice, as int64."""
    if choice == 0:
        return seed
    mixed = splitmix64((seed + choice) & MASK)
    return mixed - (1 << 64) if mixed >> 63 else mixed
