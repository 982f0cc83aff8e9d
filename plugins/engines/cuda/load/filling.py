"""Copies a source's tensors, or a rank's part of them, to their places in a network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import TypeAlias

import torch
from torch import Tensor

from tokenwire.core.errors import ConfigError
from tokenwire.plugins.engines.cuda.layers.site import Cut
from tokenwire.plugins.engines.cuda.load.source import Entry, Source

__all__ = ("Progress", "fill")

Progress: TypeAlias = Callable[[int, int], None]
"""Called with bytes read and bytes in all, after each tensor, from any thread but one at a time."""

SCALE = "_scale_inv"
FLOAT8 = ("F8_E4M3",)
WHOLE: Mapping[str, Cut] = {}
ONCE: Mapping[str, Sequence[Tensor]] = {}
IN_ORDER: Mapping[str, Tensor] = {}
INTEGERS = ("I8", "I16", "I32", "I64", "U8", "U16", "U32", "U64", "BOOL")
"""Codes of a quantisation whose scales are elsewhere: as numbers they would be noise."""


def fill(
    places: Mapping[str, Tensor],
    source: Source,
    *,
    cuts: Mapping[str, Cut] = WHOLE,
    doubles: Mapping[str, Sequence[Tensor]] = ONCE,
    orders: Mapping[str, Tensor] = IN_ORDER,
    elsewhere: Set[str] = frozenset(),
    optional: Set[str] = frozenset(),
    block: tuple[int, int] | None = None,
    threads: int = 4,
    progress: Progress | None = None,
) -> int:
    """Fills every place; returns the bytes read. Casts to the place's dtype while it copies.

    `cuts`, `doubles`, `orders`, `elsewhere`: as a Site's; rows are put in order after the cut.
    `optional`: names that the source may have and the network has no place for (a tied head).
    `block`: an fp8 weight whose place is not fp8 is multiplied by its scales, one a block.
    Raises ConfigError for a tensor that is missing, unknown or of another shape.
    """
    _check(places, source, cuts, elsewhere, optional)
    names = sorted(places, key=lambda name: _order(source.entries[name]))
    total = sum(source.entries[name].bytes_of(cuts.get(name)) for name in names)
    lock, done = Lock(), 0

    def copy(name: str) -> None:
        nonlocal done
        with torch.inference_mode():
            values = _values(name, places[name], source, cuts.get(name), block)
            if name in orders:
                values = _ordered(values, orders[name])
            for place in (places[name], *doubles.get(name, ())):
                place.copy_(values)
        with lock:
            done += source.entries[name].bytes_of(cuts.get(name))
            if progress is not None:
                progress(done, total)

    with ThreadPoolExecutor(threads, "load") as pool:
        for each in [pool.submit(copy, name) for name in names]:
            each.result()
    return total


def _order(entry: Entry) -> tuple[str, str]:
    """File by file, so that readahead helps."""
    return entry.file, entry.key


def _check(
    places: Mapping[str, Tensor],
    source: Source,
    cuts: Mapping[str, Cut],
    elsewhere: Set[str],
    optional: Set[str],
) -> None:
    entries = source.entries
    files = ", ".join(sorted({entry.file for entry in entries.values()}))
    missing = sorted(set(places) - set(entries))
    if missing:
        raise ConfigError(
            f"{files}: wanted the tensor {missing[0]!r} of shape "
            f"{_whole(places[missing[0]], cuts.get(missing[0]))}, and it is not there "
            f"({len(missing)} of {len(places)} are missing): "
            "config.json describes another model, or the checkpoint is not whole"
        )
    for name, entry in entries.items():
        place = places.get(name)
        if place is None:
            known = name in optional or name in elsewhere
            if known or _is_scale(name, {*places, *elsewhere}, entries):
                continue
            raise ConfigError(
                f"{entry.file}: tensor {entry.key!r} of shape {list(entry.shape)} is unknown: "
                "wanted none of that name; config.json describes another model"
            )
        if _whole(place, cuts.get(name)) != list(entry.shape):
            raise ConfigError(
                f"{entry.file}: tensor {entry.key!r}: wanted the shape "
                f"{_whole(place, cuts.get(name))}, "
                f"got {list(entry.shape)}: config.json describes another model"
            )
        if entry.kind in INTEGERS:
            raise ConfigError(
                f"{entry.file}: tensor {entry.key!r}: wanted numbers of floating point, got "
                f"{entry.kind}: take a checkpoint that is not quantised, or quantised to fp8"
            )
        if place.dtype == torch.float8_e4m3fn and entry.kind not in FLOAT8:
            raise ConfigError(
                f"{entry.file}: tensor {entry.key!r}: wanted {FLOAT8[0]}, got {entry.kind}: name "
                "the module under modules_to_not_convert in config.json's quantization_config"
            )


def _whole(place: Tensor, cut: Cut | None) -> list[int]:
    """The shape of the checkpoint's tensor."""
    shape = list(place.shape)
    if cut is not None:
        shape[cut.dim] = cut.of
    return shape


def _is_scale(name: str, known: Set[str], entries: Mapping[str, Entry]) -> bool:
    """Of a weight that is multiplied by its scales when it is loaded."""
    weight = name.removesuffix(SCALE)
    return (
        name != weight and weight in known and weight in entries and entries[weight].kind in FLOAT8
    )


def _values(
    name: str, place: Tensor, source: Source, cut: Cut | None, block: tuple[int, int] | None
) -> Tensor:
    values = source.read(name, cut)
    if source.entries[name].kind not in FLOAT8 or place.dtype == torch.float8_e4m3fn:
        return values
    scale = f"{name}{SCALE}"
    entry = source.entries[name]
    if block is None or scale not in source.entries:
        raise ConfigError(
            f"{entry.file}: tensor {entry.key!r} is {entry.kind}: wanted {scale!r} beside it and "
            "a weight_block_size in config.json's quantization_config, and one is not there"
        )
    wanted = [-(-size // each) for size, each in zip(entry.shape, block, strict=True)]
    found = source.entries[scale].shape
    if list(found) != wanted:
        raise ConfigError(
            f"{entry.file}: tensor {entry.key}{SCALE}: wanted the shape {wanted}, got {list(found)}"
        )
    firsts = [0, 0]
    if cut is not None:
        firsts[cut.dim] = cut.start
    scales = source.read(scale, None if cut is None else _of_blocks(cut, block[cut.dim]))
    return _times_scales(values, scales.float(), block, firsts)


def _of_blocks(cut: Cut, size: int) -> Cut:
    """The scales of the blocks that a cut reaches into."""
    first, end = cut.start // size, -(-(cut.start + cut.length) // size)
    return Cut(cut.dim, first, end - first, -(-cut.of // size))


def _times_scales(
    values: Tensor, scales: Tensor, block: tuple[int, int], firsts: Sequence[int]
) -> Tensor:
    """values [N, K] of a weight from row firsts[0] and column firsts[1] on, and the scales of the
    blocks that they are in -> [N, K] float32."""
    (rows, columns), ahead = (
        values.shape,
        [first % size for first, size in zip(firsts, block, strict=True)],
    )
    wide = scales.repeat_interleave(block[1], dim=1)[:, ahead[1] : ahead[1] + columns]
    found = values.float()
    for index in range(len(wide)):
        start = index * block[0] - ahead[0]
        found[max(start, 0) : min(start + block[0], rows)] *= wide[index]
    return found


def _ordered(values: Tensor, order: Tensor) -> Tensor:
    """`values` [N, ...], whose rows are those that `order` [N] names."""
    if values.dtype != torch.float8_e4m3fn:
        return values[order]
    # Why bytes: torch gathers no 8-bit floats on the CPU.
    return values.view(torch.uint8)[order].view(values.dtype)
