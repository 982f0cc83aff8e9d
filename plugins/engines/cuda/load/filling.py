"""Copies a source's tensors, or a rank's part of them, to their places in a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

import torch
from torch import Tensor

from tokenwire.core.errors import ConfigError
from tokenwire.plugins.engines.cuda.layers.site import Cut
from tokenwire.plugins.engines.cuda.load.scales import FLOAT8, SCALE, in_order, read_values
from tokenwire.plugins.engines.cuda.load.source import Entry, Source
from tokenwire.plugins.engines.cuda.progress import Progress

__all__ = ("fill",)

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
    `progress` is called after each tensor.
    Raises ConfigError for a tensor that is missing, unknown or of another shape.
    """
    _check(places, source, cuts, elsewhere, optional)
    names = sorted(places, key=lambda name: _order(source.entries[name]))
    total = sum(source.entries[name].bytes_of(cuts.get(name)) for name in names)
    lock, done = Lock(), 0

    def copy(name: str) -> None:
        nonlocal done
        with torch.inference_mode():
            values = read_values(name, places[name], source, cuts.get(name), block)
            if name in orders:
                values = in_order(values, orders[name])
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
