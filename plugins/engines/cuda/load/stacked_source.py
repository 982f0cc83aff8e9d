"""A checkpoint that has all experts of a layer in one tensor, expert by expert (gpt-oss).

Plain: `experts.gate_up_proj` [E, H, 2I], `experts.down_proj` [E, I, H], which are multiplied from
the right, and their `_bias`. Quantised to MXFP4: `_blocks` [E, 2I, H / 32, 16] and `_scales`
[E, 2I, H / 32]. Rows of gate and up alternate. What is listed is as others write it:
`experts.0.gate_proj.weight` [I, H]; of an expert nothing but its own numbers are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, final

from torch import Tensor

from tokenwire.core.errors import ConfigError
from tokenwire.plugins.engines.cuda.layers.site import Cut
from tokenwire.plugins.engines.cuda.load.mxfp4 import BLOCK, dequantised
from tokenwire.plugins.engines.cuda.load.safetensors_source import SafetensorsSource
from tokenwire.plugins.engines.cuda.load.source import Entry, Source

__all__ = ("StackedSource",)

PARTS = {"gate_up_proj": ("gate_proj", "up_proj"), "down_proj": ("down_proj",)}
STACKED = re.compile(r"(.*\.experts)\.(gate_up_proj|down_proj)(_bias|_blocks|_scales|)")
BLOCKS, SCALES = "_blocks", "_scales"
Layout = Literal["plain", "bias", "mxfp4"]


@dataclass(frozen=True, slots=True)
class _Piece:
    """One expert's tensor within a stacked one."""

    stack: str
    layout: Layout
    expert: int
    first: int
    step: int
    """Its rows are first, first + step, ... of the stack's."""


@final
class StackedSource(Source):
    """Other tensors are passed through as they are."""

    def __init__(self, inner: SafetensorsSource) -> None:
        self._inner = inner
        self._entries: dict[str, Entry] = {}
        self._pieces: dict[str, _Piece] = {}
        for name, entry in inner.entries.items():
            match = STACKED.fullmatch(name)
            if match is None:
                self._entries[name] = entry
            elif match[3] != SCALES:
                for ours, piece, its in self._pieces_of(name, match):
                    self._pieces[ours], self._entries[ours] = piece, its

    @property
    def entries(self) -> Mapping[str, Entry]:
        return self._entries

    def read(self, name: str, cut: Cut | None = None) -> Tensor:
        piece = self._pieces.get(name)
        if piece is None:
            return self._inner.read(name, cut)
        shape = self._entries[name].shape
        spans = [(0, size) for size in shape]
        if cut is not None:
            spans[cut.dim] = cut.start, cut.start + cut.length
        its, rows = slice(piece.expert, piece.expert + 1), _stretched(spans[0], piece.step)
        own = slice(piece.first, None, piece.step)
        if piece.layout == "bias":
            return self._inner.part(piece.stack, (its, rows))[0, own]
        first, end = spans[1]
        if piece.layout == "plain":
            return self._inner.part(piece.stack, (its, slice(first, end), rows))[0, :, own].t()
        groups = slice(first // BLOCK, -(-end // BLOCK))
        blocks = self._inner.part(piece.stack, (its, rows, groups))[0, own]
        scales = self._inner.part(_scales_of(piece.stack), (its, rows, groups))[0, own]
        ahead = groups.start * BLOCK
        return dequantised(blocks, scales)[:, first - ahead : end - ahead]

    def _pieces_of(self, name: str, match: re.Match[str]) -> Iterator[tuple[str, _Piece, Entry]]:
        """The name, the piece and the entry of every expert's part of a stack."""
        module, stack, suffix = match.groups()
        layout: Layout = "bias" if suffix == "_bias" else "mxfp4" if suffix else "plain"
        entry, parts = self._inner.entries[name], PARTS[stack]
        experts, shape, size = self._measured(name, entry, layout, len(parts))
        kind = "MXFP4" if layout == "mxfp4" else entry.kind
        own = "bias" if layout == "bias" else "weight"
        size //= max(experts * len(parts), 1)
        for expert in range(experts):
            for first, part in enumerate(parts):
                piece = _Piece(name, layout, expert, first, len(parts))
                its = Entry(entry.file, shape, kind, size, entry.key)
                yield f"{module}.{expert}.{part}.{own}", piece, its

    def _measured(
        self, name: str, entry: Entry, layout: Layout, parts: int
    ) -> tuple[int, tuple[int, ...], int]:
        """(experts, the shape of one's part, bytes of all), or ConfigError."""
        dims = {"bias": 2, "plain": 3, "mxfp4": 4}[layout]
        if len(entry.shape) != dims:
            raise _wrong(entry, f"{dims} dimensions, experts the first of them")
        experts, size = entry.shape[0], entry.bytes
        rows = entry.shape[2 if layout == "plain" else 1]
        if rows % parts:
            raise _wrong(entry, "as many rows of gate as of up")
        if layout == "bias":
            return experts, (rows // parts,), size
        if layout == "plain":
            return experts, (rows // parts, entry.shape[1]), size
        scales = self._inner.entries.get(_scales_of(name))
        wanted = entry.shape[:3]
        if entry.shape[3] != BLOCK // 2 or entry.kind != "U8":
            raise _wrong(entry, f"U8 with {BLOCK // 2} bytes a block")
        if scales is None or scales.shape != wanted or scales.kind != "U8":
            raise _wrong(
                entry, f"its scales of shape {list(wanted)}, U8, under ..._scales beside it"
            )
        return experts, (rows // parts, entry.shape[2] * BLOCK), size + scales.bytes


def _stretched(span: tuple[int, int], step: int) -> slice:
    return slice(span[0] * step, span[1] * step)


def _scales_of(name: str) -> str:
    return name.removesuffix(BLOCKS) + SCALES


def _wrong(entry: Entry, wanted: str) -> ConfigError:
    return ConfigError(
        f"{entry.file}: tensor {entry.key!r}: wanted {wanted}, got the shape {list(entry.shape)} "
        f"of {entry.kind}: the checkpoint is not gpt-oss's, or not whole"
    )
