"""Copies a source's tensors to their places in a network, several at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import TypeAlias

import torch
from torch import Tensor

from tokenwire.core.errors import ConfigError
from tokenwire.plugins.engines.cuda.load.source import Entry, Source

__all__ = ("Progress", "fill")

Progress: TypeAlias = Callable[[int, int], None]
"""Called with bytes read and bytes in all, after each tensor, from any thread but one at a time."""

SCALE = "_scale_inv"
FLOAT8 = ("F8_E4M3",)
INTEGERS = ("I8", "I16", "I32", "I64", "U8", "U16", "U32", "U64", "BOOL")
"""Codes of a quantisation whose scales are elsewhere: as numbers they would be noise."""


def fill(
    places: Mapping[str, Tensor],
    source: Source,
    *,
    optional: frozenset[str] = frozenset(),
    block: tuple[int, int] | None = None,
    threads: int = 4,
    progress: Progress | None = None,
) -> int:
    """Fills every place; returns the bytes read. Casts to the place's dtype while it copies.

    `optional`: names that the source may have and the network has no place for (a tied head).
    `block`: an fp8 weight whose place is not fp8 is multiplied by its scales, one a block.
    Raises ConfigError for a tensor that is missing, unknown or of another shape.
    """
    _check(places, source, optional)
    names = sorted(places, key=lambda name: _order(source.entries[name]))
    total = sum(source.entries[name].bytes for name in names)
    lock, done = Lock(), 0

    def copy(name: str) -> None:
        nonlocal done
        with torch.inference_mode():
            places[name].copy_(_values(name, places[name], source, block))
        with lock:
            done += source.entries[name].bytes
            if progress is not None:
                progress(done, total)

    with ThreadPoolExecutor(threads, "load") as pool:
        for each in [pool.submit(copy, name) for name in names]:
            each.result()
    return total


def _order(entry: Entry) -> tuple[str, str]:
    """File by file, so that readahead helps."""
    return entry.file, entry.key


def _check(places: Mapping[str, Tensor], source: Source, optional: frozenset[str]) -> None:
    entries = source.entries
    files = ", ".join(sorted({entry.file for entry in entries.values()}))
    missing = sorted(set(places) - set(entries))
    if missing:
        raise ConfigError(
            f"{files}: wanted the tensor {missing[0]!r} of shape "
            f"{list(places[missing[0]].shape)}, and it is not there "
            f"({len(missing)} of {len(places)} are missing): "
            "config.json describes another model, or the checkpoint is not whole"
        )
    for name, entry in entries.items():
        place = places.get(name)
        if place is None:
            if name in optional or _is_scale(name, places, entries):
                continue
            raise ConfigError(
                f"{entry.file}: tensor {entry.key!r} of shape {list(entry.shape)} is unknown: "
                "wanted none of that name; config.json describes another model"
            )
        if tuple(place.shape) != entry.shape:
            raise ConfigError(
                f"{entry.file}: tensor {entry.key!r}: wanted the shape {list(place.shape)}, "
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


def _is_scale(name: str, places: Mapping[str, Tensor], entries: Mapping[str, Entry]) -> bool:
    """Of a weight that is multiplied by its scales here."""
    weight = name.removesuffix(SCALE)
    return name != weight and weight in places and entries[weight].kind in FLOAT8


def _values(name: str, place: Tensor, source: Source, block: tuple[int, int] | None) -> Tensor:
    values = source.read(name)
    if source.entries[name].kind not in FLOAT8 or place.dtype == torch.float8_e4m3fn:
        return values
    scale = f"{name}{SCALE}"
    entry = source.entries[name]
    if block is None or scale not in source.entries:
        raise ConfigError(
            f"{entry.file}: tensor {entry.key!r} is {entry.kind}: wanted {scale!r} beside it and "
            "a weight_block_size in config.json's quantization_config, and one is not there"
        )
    return _times_scales(entry, values, source.read(scale).float(), block)


def _times_scales(entry: Entry, values: Tensor, scales: Tensor, block: tuple[int, int]) -> Tensor:
    """values [N, K], and scales [ceil(N / rows), ceil(K / columns)] -> [N, K] float32."""
    rows, columns = values.shape
    wanted = [-(-rows // block[0]), -(-columns // block[1])]
    if list(scales.shape) != wanted:
        raise ConfigError(
            f"{entry.file}: tensor {entry.key}{SCALE}: wanted the shape {wanted}, "
            f"got {list(scales.shape)}"
        )
    wide = scales.repeat_interleave(block[1], dim=1)[:, :columns]
    found = values.float()
    for index in range(wanted[0]):
        found[index * block[0] : (index + 1) * block[0]] *= wide[index]
    return found
