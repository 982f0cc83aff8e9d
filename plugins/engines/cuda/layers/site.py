"""Where a network is built: device and dtype, and a place in memory for each checkpoint tensor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import torch
from torch import Tensor

from tokenwire.core.errors import ConfigError
from tokenwire.plugins.engines.cuda.models.config import ModelConfig
from tokenwire.plugins.engines.cuda.parallel.group import Group
from tokenwire.plugins.engines.cuda.parallel.mesh import SOLE, Mesh

if TYPE_CHECKING:
    from tokenwire.kernels.ops import Ops

__all__ = ("Cut", "DispatcherName", "Lying", "Site")

DispatcherName = Literal["auto", "gathered", "exchanged", "deep_ep"]


@dataclass(frozen=True, slots=True)
class Cut:
    """The part of a checkpoint's tensor that one rank holds."""

    dim: int
    start: int
    length: int
    of: int
    """The tensor's whole size in `dim`."""

    def by(self, block: int) -> Cut:
        """The same of a tensor with one number for each `block` in a row."""
        return Cut(self.dim, self.start // block, self.length // block, self.of // block)


class Lying(TypedDict, total=False):
    """Those of a Site's fields that say how its network lies over ranks, and how it is run."""

    mesh: Mesh
    dispatcher: DispatcherName
    redundant: int
    captured: int
    is_steady: bool


@dataclass(frozen=True, slots=True)
class Site:
    """Layers ask it for memory, and say which tensor of the checkpoint belongs into which part.

    The memory is not initialised: whoever fills `places` makes the network usable.
    """

    config: ModelConfig
    ops: Ops
    device: torch.device
    dtype: torch.dtype
    keeps_fp8: bool = False
    """fp8 weights stay as they are in memory, and are multiplied by `ops.fp8_matmul`."""
    places: dict[str, Tensor] = field(default_factory=dict)
    """A checkpoint tensor's name -> the (part of a) weight it goes to, in the wanted shape."""
    cuts: dict[str, Cut] = field(default_factory=dict)
    """Of `places` that take a part of their tensor."""
    doubles: dict[str, list[Tensor]] = field(default_factory=dict)
    """A checkpoint tensor's name -> further places for the same."""
    orders: dict[str, Tensor] = field(default_factory=dict)
    """Of `places` that want their tensor's rows in another order: which row goes where, int64; on
    the CPU, where tensors are read."""
    elsewhere: set[str] = field(default_factory=set)
    """Tensors that the network has, and other ranks hold."""
    mesh: Mesh = SOLE
    dispatcher: DispatcherName = "auto"
    """How rows reach experts of other ranks."""
    redundant: int = 0
    """Places for experts beyond one for each, in all ranks."""
    captured: int = 0
    """The most tokens of a rank's step that is captured in a CUDA graph; 0: none is."""
    is_steady: bool = False
    """A token's bits may not depend on what shares its step."""
    once: dict[str, Any] = field(default_factory=dict)
    """What all layers share and the first that needs it makes, by name."""

    def weight(self, name: str, *shape: int) -> Tensor:
        """Memory for one tensor."""
        tensor = self.empty(*shape)
        self.places[name] = tensor
        return tensor

    def put(self, name: str, place: Tensor, cut: Cut | None = None) -> None:
        """`place` takes the checkpoint's tensor, or the part of it that `cut` says; a name's second
        place and those after it take the same part as the first."""
        if name in self.places:
            self.doubles.setdefault(name, []).append(place)
            return
        self.places[name] = place
        if cut is not None:
            self.cuts[name] = cut

    def slice_of(self, what: str, size: int, *, dim: int = 0, shared: int = 1) -> Cut | None:
        """This rank's slice of a size that is cut evenly over the slices of a part; None: all of
        it, where there is one. `shared`: so many neighbours have the same slice.

        Raises ConfigError that names `what` where it cannot be cut so.
        """
        count = self.mesh.tensor.size
        if count == 1:
            return None
        if count % shared or size % (count // shared):
            raise ConfigError(
                f"{self.config.family}: {what} has {size}, which cannot be cut {count} ways: "
                f"choose a parallel_strategy TP_n whose n divides it; it is "
                f"{self.mesh.layout.name}"
            )
        length = size * shared // count
        return Cut(dim, self.mesh.slice // shared * length, length, size)

    def sum_over(self, group: Group) -> Callable[[Tensor], Tensor]:
        """Adds up what the ranks of a group have; may use x's memory."""
        return group.sum_in_order if self.is_steady else group.all_reduce

    def empty(self, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        return torch.empty(shape, device=self.device, dtype=dtype or self.dtype)
