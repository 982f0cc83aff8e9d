"""Pictures of Qwen2-VL, Qwen2.5-VL, Qwen3-VL and Qwen3.5: how many tokens one takes. Pure.

The published rule ("smart resize" of the Qwen2-VL image processor): both sides are rounded to
multiples of patch times merge; what then has too many pixels, or too few, is scaled to fit first.
One token stands for merge by merge patches.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, final

from msgspec import Struct

from tokenwire.core.checkpoint import Checkpoint
from tokenwire.core.errors import RequestError
from tokenwire.core.ports.dialect import MediaProcessor
from tokenwire.plugins.dialects._shared.image_size import FORMATS, image_size

__all__ = ("Grid", "QwenVl", "grid_of", "media_of")

WIDEST: Final = 200
"""How many times as long as the other a side may be."""


class Grid(Struct, frozen=True):
    """Of one model. The defaults are Qwen2-VL's and Qwen2.5-VL's."""

    patch: int = 14
    merge: int = 2
    least: int = 56 * 56
    """Pixels of a picture as it is seen."""
    most: int = 28 * 28 * 1280

    @property
    def unit(self) -> int:
        return self.patch * self.merge

    def tokens(self, width: int, height: int) -> int:
        """Of a picture of so many pixels."""
        unit = self.unit
        rows, columns = round(height / unit), round(width / unit)
        pixels = rows * columns * unit * unit
        if pixels > self.most:
            shrunk = math.sqrt(width * height / self.most)
            rows = max(1, math.floor(height / shrunk / unit))
            columns = max(1, math.floor(width / shrunk / unit))
        elif pixels < self.least:
            grown = math.sqrt(self.least / (width * height))
            rows, columns = (math.ceil(side * grown / unit) for side in (height, width))
        return rows * columns


PUBLISHED = Grid()
GRIDS: Final[Mapping[str, Grid]] = {
    "qwen2_vl": PUBLISHED,
    "qwen2_5_vl": PUBLISHED,
    "qwen3_vl": Grid(16, 2, 65_536, 16_777_216),
    "qwen3_vl_moe": Grid(16, 2, 65_536, 16_777_216),
    "qwen3_5": Grid(16, 2, 65_536, 16_777_216),
    "qwen3_5_moe": Grid(16, 2, 65_536, 16_777_216),
}
"""By config.json's model_type."""


@final
class QwenVl(MediaProcessor):
    name = "qwen_vl"
    before = "<|vision_start|>"
    pad = "<|image_pad|>"
    after = "<|vision_end|>"

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self.revision = f"{grid.patch}-{grid.merge}-{grid.least}-{grid.most}"

    def length(self, kind: str, data: bytes) -> int:
        size = image_size(data)
        if size is None:
            raise RequestError(
                f"a picture must be {FORMATS}: these bytes are none of them, or their header is"
                " cut off",
                param="messages",
                code="unknown_image_format",
            )
        width, height = size
        if max(size) > WIDEST * min(size):
            raise RequestError(
                f"a picture of {width} by {height} pixels is more than {WIDEST} times as long as"
                " it is wide",
                param="messages",
                code="unsupported_image",
            )
        return self._grid.tokens(width, height)


def media_of(checkpoint: Checkpoint | None) -> MediaProcessor | None:
    """Of a checkpoint that takes pictures as these models do; None of any other."""
    grid = None if checkpoint is None else GRIDS.get(str(checkpoint.config().get("model_type")))
    if checkpoint is None or grid is None:
        return None
    return QwenVl(grid_of(checkpoint.preprocessor_config(), grid))


def grid_of(config: Mapping[str, object], grid: Grid = PUBLISHED) -> Grid:
    """What a preprocessor_config.json says; the rest as in `grid`."""
    size = config.get("size")
    sizes = size if isinstance(size, dict) else {}
    return Grid(
        _positive(config.get("patch_size"), grid.patch),
        _positive(config.get("merge_size"), grid.merge),
        _positive(sizes.get("shortest_edge", config.get("min_pixels")), grid.least),
        _positive(sizes.get("longest_edge", config.get("max_pixels")), grid.most),
    )


def _positive(value: object, default: int) -> int:
    return value if type(value) is int and value > 0 else default
