"""GPUs as figures, each marked measured, published or scaled; and how many share a fast link.

What a datasheet promises no kernel reaches. Where nobody measured a GPU, its figures here are the
datasheet's times the fraction that an H200 reaches of its own, so that two kinds compare fairly.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

from tokenwire.core.cost.links import Links
from tokenwire.core.errors import ConfigError

__all__ = ("GPUS", "Cluster", "Figure", "Gpu", "gpu_named")

Mark = Literal["measured", "published", "scaled"]


class Figure(Struct, frozen=True):
    """A rate that can be reached, what the datasheet says, and where the first comes from."""

    value: float
    datasheet: float
    mark: Mark


class Gpu(Struct, frozen=True):
    """One kind of GPU. Bytes, bytes/s, dense operations/s."""

    name: str
    memory: float
    """Bytes on the datasheet."""
    bandwidth: Figure
    """Of its memory."""
    bf16: Figure
    fp8: Figure | None
    """None: it has no fp8 products; weights in fp8 are multiplied in bf16."""
    nvlink: float
    """Bytes/s in one direction between GPUs of a domain; datasheet."""
    domain: int
    """GPUs that NVLink joins, as such machines are usually sold."""
    nic: float
    """Bytes/s in one direction of a GPU's own network card; datasheet."""

    def peak(self, compute: Literal["bf16", "fp8"]) -> float:
        """Operations/s of products in a dtype, or in bf16 where it lacks that one."""
        if compute == "fp8" and self.fp8 is not None:
            return self.fp8.value
        return self.bf16.value


class Cluster(Struct, frozen=True):
    """GPUs of one kind, and the links between them."""

    gpu: Gpu
    domain: int
    """GPUs that share NVLink."""
    nic: float
    """Bytes/s in one direction, a GPU, beyond the domain."""
    links: Links | None = None
    """As measured; what it lacks is the datasheet's."""

    def __post_init__(self) -> None:
        if self.domain < 1:
            raise ConfigError(f"domain: wanted at least 1 GPU, got {self.domain}")
        if not 0 < self.nic < float("inf"):
            raise ConfigError(f"nic: wanted bytes a second above 0, got {self.nic}")

    @classmethod
    def of(
        cls,
        gpu: Gpu,
        *,
        domain: int | None = None,
        nic: float | None = None,
        links: Links | None = None,
    ) -> Cluster:
        """As the GPU is usually built in, but for what is said, and then what was measured."""
        found = gpu.nic if links is None or links.across is None else links.across
        return cls(
            gpu, gpu.domain if domain is None else domain, found if nic is None else nic, links
        )

    @property
    def inside(self) -> float:
        """Bytes/s in one direction between GPUs of a domain."""
        measured = None if self.links is None else self.links.within
        return self.gpu.nvlink if measured is None else measured

    @property
    def measured(self) -> tuple[bool, bool]:
        """Whether the link within domains is a measured one, and the one beyond."""
        if (links := self.links) is None:
            return False, False
        return links.within is not None, links.across == self.nic

    def link(self, ranks: int) -> float:
        """Bytes/s of the slowest link that a group of this many GPUs needs."""
        return self.inside if ranks <= self.domain else min(self.inside, self.nic)

    def summing(self, ranks: int) -> float:
        """As `link`, for the all-reduces of so many GPUs."""
        measured = None if self.links is None else self.links.sums
        return measured if measured is not None and ranks <= self.domain else self.link(ranks)


# Copies of 1 GiB, and products of 8192 x 8192 in bf16, on one H200; in fp8 the best that DeepGEMM's
# authors published for the same SMs.
_H200: Final = (
    Figure(4.3e12, 4.8e12, "measured"),
    Figure(790e12, 989e12, "measured"),
    Figure(1550e12, 1979e12, "published"),
)


def _scaled(datasheet: float, like: Figure) -> Figure:
    return Figure(datasheet * like.value / like.datasheet, datasheet, "scaled")


def _gpu(
    name: str,
    memory: float,
    rates: tuple[float, float, float | None],
    *,
    nvlink: float,
    domain: int = 8,
    nic: float = 50e9,
) -> Gpu:
    """From a datasheet alone: bandwidth, bf16, fp8."""
    bandwidth, bf16, fp8 = rates
    return Gpu(
        name,
        memory,
        _scaled(bandwidth, _H200[0]),
        _scaled(bf16, _H200[1]),
        None if fp8 is None else _scaled(fp8, _H200[2]),
        nvlink,
        domain,
        nic,
    )


GPUS: Final[tuple[Gpu, ...]] = (
    Gpu("h200", 141e9, *_H200, nvlink=450e9, domain=8, nic=50e9),
    _gpu("h100", 80e9, (3.35e12, 989e12, 1979e12), nvlink=450e9),
    _gpu("h800", 80e9, (3.35e12, 989e12, 1979e12), nvlink=200e9),
    _gpu("h20", 96e9, (4.0e12, 148e12, 296e12), nvlink=450e9),
    _gpu("b200", 180e9, (7.7e12, 2250e12, 4500e12), nvlink=900e9),
    _gpu("gb200", 186e9, (8.0e12, 2500e12, 5000e12), nvlink=900e9, domain=72),
    _gpu("a100", 80e9, (2.039e12, 312e12, None), nvlink=300e9, nic=25e9),
)
"""SXM boards. No sparsity in any figure."""


def gpu_named(name: str) -> Gpu:
    """A GPU of the table. Raises ConfigError, which names all of them."""
    for gpu in GPUS:
        if gpu.name == name.lower():
            return gpu
    known = ", ".join(gpu.name for gpu in GPUS)
    raise ConfigError(f"GPU '{name}': its figures are not known; known are {known}")
