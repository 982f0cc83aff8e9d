"""What of a linear layer's weights one rank holds, and where in its memory each part goes.

Over the slices of a part a layer is whole, or cut by its outputs, or cut by its inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal, final

from torch import Tensor

from tokenwire.core.errors import ConfigError
from tokenwire.plugins.engines.cuda.layers.site import Cut, Site

__all__ = ("CutBy", "Part", "Share", "share")

OPS_BLOCK = (128, 128)
"""That of the op fp8_matmul."""
PLAIN = (1, 1)
SIDES = ("outputs", "inputs")
Part = tuple[str, int]
"""A module's name in the checkpoint, and how many outputs it has."""
CutBy = Literal["", "outputs", "inputs"]


@final
@dataclass(frozen=True, slots=True)
class Share:
    """Of modules whose outputs are stacked into one weight."""

    parts: tuple[Part, ...]
    """With the outputs that are here."""
    inputs: int
    """Those that are here."""
    cuts: tuple[Cut | None, ...]
    """For each part, of its weight [outputs, inputs]."""

    @property
    def outputs(self) -> int:
        return sum(size for _, size in self.parts)

    @property
    def starts(self) -> tuple[int, ...]:
        """Where each part's outputs begin."""
        return tuple(accumulate((size for _, size in self.parts[:-1]), initial=0))

    def put(self, site: Site, whole: Tensor, suffix: str, block: tuple[int, int] = PLAIN) -> None:
        """Give each part its rows of `whole` [outputs] or [outputs, inputs], one of whose numbers
        stands for a `block` of weights."""
        for (name, size), start, cut in zip(self.parts, self.starts, self.cuts, strict=True):
            place = whole[start // block[0] : (start + size) // block[0]]
            if cut is not None and cut.dim < place.dim():
                site.put(f"{name}.{suffix}", place, cut.by(block[cut.dim]))
            else:
                site.put(f"{name}.{suffix}", place)

    def whole(self, part: int) -> tuple[int, int]:
        """Inputs and outputs of a part's module in the checkpoint."""
        sizes, cut = [self.parts[part][1], self.inputs], self.cuts[part]
        if cut is not None:
            sizes[cut.dim] = cut.of
        return sizes[1], sizes[0]

    def fp8_block(self, site: Site) -> tuple[int, int] | None:
        """The fp8 block, where the weights stay quantised in memory: they do not where a block
        would reach over the edge between two parts, or is not what the op takes.

        Raises ConfigError where blocks would fit the whole weights, and not a slice.
        """
        found = site.config.quantisation
        if found is None or not site.keeps_fp8 or found.block != OPS_BLOCK:
            return None
        if any(_is_skipped(name, found.skipped) for name, _ in self.parts):
            return None
        for part in range(len(self.parts)):
            inputs, outputs = self.whole(part)
            if outputs % found.block[0] or inputs % found.block[1]:
                return None
        for (name, _), cut in zip(self.parts, self.cuts, strict=True):
            if cut is not None and cut.length % found.block[cut.dim]:
                raise ConfigError(
                    f"{site.config.family}: {name} has {cut.of} {SIDES[cut.dim]} in fp8 blocks of "
                    f"{found.block[cut.dim]}, and a slice of {cut.length} would end inside of one: "
                    "choose a parallel_strategy TP_n of fewer slices, set quantisation to none, "
                    "which dequantises weights, or take a checkpoint in 16 bits"
                )
        return found.block


def share(
    site: Site, parts: Sequence[Part], inputs: int, cut: CutBy = "", shared: Sequence[int] = ()
) -> Share:
    """`parts` and `inputs`: the checkpoint's sizes. `cut`: over the slices of the site's mesh.
    `shared`: for each part that is cut by outputs, how many neighbouring slices have the same
    ones; none given: each its own.

    Raises ConfigError for a size that cannot be cut so.
    """
    cuts: list[Cut | None] = []
    for (name, size), sharing in zip(parts, shared or (1,) * len(parts), strict=True):
        match cut:
            case "outputs":
                cuts.append(site.slice_of(f"{name} (outputs)", size, shared=sharing))
            case "inputs":
                cuts.append(site.slice_of(f"{name} (inputs)", inputs, dim=1))
            case _:
                cuts.append(None)
    held = tuple(
        (name, each.length if each is not None and each.dim == 0 else size)
        for (name, size), each in zip(parts, cuts, strict=True)
    )
    columns = [each.length for each in cuts if each is not None and each.dim == 1]
    return Share(held, columns[0] if columns else inputs, tuple(cuts))


def _is_skipped(name: str, skipped: Sequence[str]) -> bool:
    return any(name == each or name.startswith(f"{each}.") for each in skipped)
