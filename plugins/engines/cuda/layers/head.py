"""Scores of every token of the vocabulary, whose rows are divided over the slices of a part."""

from __future__ import annotations

from typing import final

from torch import Tensor
from torch.nn import functional as F

from tokenwire.plugins.engines.cuda.layers.matmul import Product, settle
from tokenwire.plugins.engines.cuda.layers.site import Cut, Site

__all__ = ("Head",)


@final
class Head:
    """[R, H] -> [R, V], on every slice the same. All slices of a part call it together."""

    __slots__ = ("group", "product", "tied", "vocab_size", "weight", "width")

    def __init__(self, site: Site, name: str, embedding: Tensor | None) -> None:
        """`embedding` [V, H]: the weight, where it is tied to that."""
        self.group, self.vocab_size = site.mesh.tensor, site.config.vocab_size
        self.product: Product = site.ops.matmul
        # Why rounded up: a vocabulary need not divide; the last slices then have fewer rows.
        self.width = -(-self.vocab_size // self.group.size)
        start = min(site.mesh.slice * self.width, self.vocab_size)
        rows = min(self.width, self.vocab_size - start)
        self.tied = embedding is not None
        if embedding is not None:
            self.weight = embedding[start : start + rows]
            return
        self.weight = site.empty(rows, site.config.hidden)
        if self.group.size == 1:
            site.put(f"{name}.weight", self.weight)
        elif rows:
            site.put(f"{name}.weight", self.weight, Cut(0, start, rows, self.vocab_size))
        else:
            site.elsewhere.add(f"{name}.weight")

    def settle(self) -> None:
        """As Linear's; an embedding stays as it is."""
        if not self.tied:
            self.product = settle(self.weight, self.product)

    def __call__(self, hidden: Tensor) -> Tensor:
        scores = self.product(hidden, self.weight, None)
        if self.group.size == 1:
            return scores
        if scores.shape[1] < self.width:
            scores = F.pad(scores, (0, self.width - scores.shape[1]))
        every = self.group.all_gather(scores).transpose(0, 1).flatten(1)
        return every[:, : self.vocab_size].contiguous()
