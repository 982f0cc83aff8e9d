"""KV groups: which cached blocks a sequence can start from. Pure functions over block counts.

A group's layers see all keys before a query, or a window of them. A hit is a number of blocks
from the start after which computing can go on, in every group.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

__all__ = ("common_hit", "first_needed", "full_hit", "most_blocks", "window_blocks", "window_hit")


def window_blocks(window: int, size: int) -> int:
    """Blocks before a boundary that the first query after it can see into."""
    return -(-(window - 1) // size)


def first_needed(window: int, position: int, size: int) -> int:
    """Index of the first block that a query at `position` or later sees; 0 without a window."""
    if not window:
        return 0
    return max(position - window + 1, 0) // size


def most_blocks(window: int, tokens: int, chunk: int, size: int) -> int:
    """Most blocks that a sequence of `tokens` holds at once, computed `chunk` a step at most."""
    every = -(-tokens // size)
    if not window:
        return every
    # Why two more: the window's start and the chunk's may lie inside a block, and blocks that the
    # window left behind are given back when the next one is full.
    return min(every, -(-(window - 1 + chunk) // size) + 2)


def full_hit(has: Callable[[int], bool], limit: int) -> int:
    """The largest hit <= limit where every block before it is there."""
    for index in range(limit):
        if not has(index):
            return index
    return limit


def window_hit(has: Callable[[int], bool], limit: int, needed: int) -> int:
    """The largest hit <= limit where the last `needed` blocks before it are there."""
    end, run = limit, 0
    index = limit - 1
    while index >= 0 and run < needed:
        if has(index):
            run += 1
        else:
            end, run = index, 0
        index -= 1
    return end


def common_hit(groups: Sequence[tuple[int, Callable[[int], bool]]], limit: int, size: int) -> int:
    """The largest hit <= limit that every group accepts. `groups`: window, and whether the block
    of an index is in that group's cache."""
    hit = limit
    while True:
        before = hit
        for window, has in groups:
            if window:
                hit = window_hit(has, hit, window_blocks(window, size))
            else:
                hit = full_hit(has, hit)
        if hit == before:
            return hit
