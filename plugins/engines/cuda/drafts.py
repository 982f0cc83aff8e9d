"""Drafts by prompt lookup: what followed the same n-gram earlier. Pure; knows no network.

Saxena, Prompt Lookup Decoding, 2023. The newest earlier occurrence wins: text that repeats goes on
as it did the last time. What is wrong costs a little time and never a token: the network checks.
"""

from __future__ import annotations

from array import array

from tokenwire.plugins.engines.cuda.settings import Speculation

__all__ = ("propose",)

REACH = 4096
"""How far back it looks, in ids: bounds what a step costs."""


def propose(tokens: array[int], settings: Speculation, limit: int) -> list[int]:
    """Up to `limit` ids that may follow `tokens`; none where no n-gram of its end came before."""
    limit = min(limit, settings.tokens)
    if limit < 1:
        return []
    tail = tokens[-REACH:]
    data, width = tail.tobytes(), tail.itemsize
    for size in range(min(settings.longest, len(tail) - 1), settings.shortest - 1, -1):
        start = _last(data, tail[-size:].tobytes(), width)
        if start >= 0:
            found = tail[start + size : start + size + limit]
            if found:
                return found.tolist()
    return []


def _last(data: bytes, pattern: bytes, width: int) -> int:
    """Where `pattern` occurs last in `data`, its own end aside; in ids. -1: nowhere."""
    end = len(data) - width
    while True:
        at = data.rfind(pattern, 0, end)
        if at < 0 or at % width == 0:
            return at // width if at >= 0 else -1
        end = at + len(pattern) - 1
