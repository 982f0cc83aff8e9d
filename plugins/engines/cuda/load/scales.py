"""Weights in 8 bits as numbers: a part of one, times the scales of the blocks that it is in."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tokenwire.core.errors import ConfigError
from tokenwire.plugins.engines.cuda.layers.site import Cut
from tokenwire.plugins.engines.cuda.load.source import Entry, Source

__all__ = ("FLOAT8", "SCALE", "in_order", "read_values")

SCALE = "_scale_inv"
"""What a weight's name ends in where its scales are meant."""
FLOAT8 = ("F8_E4M3",)


def read_values(
    name: str, place: Tensor, source: Source, cut: Cut | None, block: tuple[int, int] | None
) -> Tensor:
    """What goes to a place; fp8 as it is where that is fp8 too. `block`: one scale's rows and
    columns. Raises ConfigError where there are no scales, or not as many as blocks."""
    values, entry = source.read(name, cut), source.entries[name]
    if entry.kind not in FLOAT8 or place.dtype == torch.float8_e4m3fn:
        return values
    scale = f"{name}{SCALE}"
    if block is None or scale not in source.entries:
        raise ConfigError(
            f"{entry.file}: tensor {entry.key!r} is {entry.kind}: wanted {scale!r} beside it and "
            "a weight_block_size in config.json's quantization_config, and one is not there"
        )
    _want_shape(entry, source.entries[scale], block)
    firsts = [0, 0]
    if cut is not None:
        firsts[cut.dim] = cut.start
    scales = source.read(scale, None if cut is None else _of_blocks(cut, block[cut.dim]))
    return _times_scales(values, scales.float(), block, firsts)


def in_order(values: Tensor, order: Tensor) -> Tensor:
    """`values` [N, ...], whose rows are those that `order` [N] names."""
    if values.dtype != torch.float8_e4m3fn:
        return values[order]
    # Why bytes: torch gathers no 8-bit floats on the CPU.
    return values.view(torch.uint8)[order].view(values.dtype)


def _want_shape(entry: Entry, scales: Entry, block: tuple[int, int]) -> None:
    wanted = [-(-size // each) for size, each in zip(entry.shape, block, strict=True)]
    if list(scales.shape) != wanted:
        raise ConfigError(
            f"{entry.file}: tensor {entry.key}{SCALE}: wanted the shape {wanted}, "
            f"got {list(scales.shape)}"
        )


def _of_blocks(cut: Cut, size: int) -> Cut:
    """The scales of the blocks that a cut reaches into."""
    first, end = cut.start // size, -(-(cut.start + cut.length) // size)
    return Cut(cut.dim, first, end - first, -(-cut.of // size))


def _times_scales(
    values: Tensor, scales: Tensor, block: tuple[int, int], firsts: Sequence[int]
) -> Tensor:
    """values [N, K] of a weight from row firsts[0] and column firsts[1] on, and the scales of the
    blocks that they are in -> [N, K] float32."""
    rows, columns = values.shape
    above, left = firsts[0] % block[0], firsts[1] % block[1]
    wide = scales.repeat_interleave(block[1], dim=1)[:, left : left + columns]
    found = values.float()
    for index, each in enumerate(wide):
        start = index * block[0] - above
        found[max(start, 0) : min(start + block[0], rows)] *= each
    return found
