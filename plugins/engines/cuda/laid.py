"""Divides the memory of one device: workspace, KV, graphs; what is left is what a model runs on.

The ranks of a group take the least that any of them has, so that all have the same blocks, and
graphs of the same sizes. Knows no scheduler and no job.
"""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from msgspec.structs import replace

from tokenwire.plugins.engines.cuda import memory, sizes
from tokenwire.plugins.engines.cuda.graphs import DecodeGraphs, graph_sizes, has_graphs
from tokenwire.plugins.engines.cuda.load import Loaded
from tokenwire.plugins.engines.cuda.parallel.mesh import SOLE, Mesh
from tokenwire.plugins.engines.cuda.passes import Between, Passes
from tokenwire.plugins.engines.cuda.policy.limits import GroupSpec
from tokenwire.plugins.engines.cuda.settings import CudaSettings
from tokenwire.plugins.engines.cuda.shortage import reserving
from tokenwire.plugins.engines.cuda.sizes import Shape
from tokenwire.plugins.engines.cuda.slots import fill_slots
from tokenwire.plugins.engines.cuda.stream import Stream

__all__ = ("Laid", "lay_out")


@final
@dataclass(frozen=True, slots=True)
class Laid:
    found: Shape
    specs: tuple[GroupSpec, ...]
    passes: Passes
    kv_dtype: torch.dtype
    rows: int
    """Of the persistent batch."""
    width: int
    """Blocks of the longest sequence's table."""
    parts: dict[str, int]
    """Bytes of what is on the device."""
    overlaps: bool
    stream: Executor | None
    """On a CPU, where steps overlap: it stands for the GPU's stream, which takes work in order."""
    graph_sizes: tuple[int, ...]
    """Of decode steps; none: there are no graphs."""


def lay_out(
    settings: CudaSettings,
    loaded: Loaded,
    found: Shape,
    mesh: Mesh = SOLE,
    between: Between | None = None,
) -> Laid:
    """Raises ConfigError where the device is too small. All ranks of `mesh` call it; `between`: as
    of Passes."""
    model, size = loaded.model, settings.block_size
    model.settle()
    found = _common_shape(found, mesh)
    is_cuda = model.device.type == "cuda"
    captures = has_graphs(
        settings.graphs, model.device, model.ops, model.config, keeps_fp8=model.site.keeps_fp8
    )
    kv_dtype = torch.float8_e4m3fn if settings.kv_dtype == "fp8" else model.dtype
    parts = {"weights": loaded.bytes, "adapters": fill_slots(model, settings.adapters)}
    remedy = "lower max_batch_tokens or gpu_memory_fraction, or end what else uses the device"
    with reserving(model.device, "a step of max_batch_tokens", lambda: 0, remedy):
        parts["workspace"] = memory.workspace(model, found, size)
    kept = memory.reserve(model, found, has_graphs=captures)
    room = memory.kv_memory(settings, model.device, sum(parts.values()), kept)
    sizes.check_room(settings, room, parts)
    room = _least(mesh, room)[0]
    specs = sizes.group_blocks(
        found, model.config, size, kv_dtype.itemsize, room, slices=mesh.tensor.size
    )
    found = sizes.shortened(found, specs, size, room)
    remedy = "lower kv_gib or gpu_memory_fraction"
    with reserving(model.device, "KV memory", lambda: room, remedy):
        caches = memory.make_caches(model, specs, size, kv_dtype)
    parts["kv"] = sum(cache.k.nbytes + cache.v.nbytes for cache in caches)
    width = -(-found.max_model_len // size) + 1
    # Why twice: one that is parked keeps its row while a step of it is in flight.
    rows = 2 * found.max_batch_size + 1
    graphs, captured = None, graph_sizes(found.max_batch_size) if captures else ()
    if captures:
        graphs = DecodeGraphs(
            lambda batch: model.forward(batch, caches),
            sizes=captured,
            width=width,
            groups=len(specs),
            block_size=size,
            max_kv=found.max_model_len,
            device=model.device,
            has_adapters=bool(settings.adapters),
            has_span=mesh.data.size > 1,
        )
        remedy = "lower gpu_memory_fraction, or set graphs to false"
        with reserving(model.device, "CUDA graphs", lambda: kept, remedy):
            parts["graphs"] = memory.taken_by(model.device, graphs.capture)
    overlaps = is_cuda if settings.overlap is None else settings.overlap
    stream = Stream(is_shared=mesh.layout.gpus > 1) if overlaps and not is_cuda else None
    passes = Passes(model, caches, rows=rows, block_size=size, graphs=graphs, between=between)
    return Laid(found, specs, passes, kv_dtype, rows, width, parts, overlaps, stream, captured)


def _common_shape(found: Shape, mesh: Mesh) -> Shape:
    least = _least(mesh, found.max_batch_size, found.max_batch_tokens, found.max_model_len)
    size, tokens, length = least
    return replace(found, max_batch_size=size, max_batch_tokens=tokens, max_model_len=length)


def _least(mesh: Mesh, *values: int) -> list[int]:
    """Of all ranks, each for itself."""
    found: list[int] = mesh.world_host.least(np.array(values, np.int64)).tolist()
    return found
