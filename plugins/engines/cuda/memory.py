"""The device's memory: how much there is, what a step needs beside weights, the KV caches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from tokenwire.kernels.attention.batch import AttentionBatch
from tokenwire.kernels.mla.splits import parts_room
from tokenwire.plugins.engines.cuda.batch import Batch, KvCache
from tokenwire.plugins.engines.cuda.models.config import ModelConfig
from tokenwire.plugins.engines.cuda.policy.limits import GroupSpec
from tokenwire.plugins.engines.cuda.settings import CudaSettings
from tokenwire.plugins.engines.cuda.sizes import GIB, Shape

if TYPE_CHECKING:
    from tokenwire.plugins.engines.cuda.models.causal import CausalModel

__all__ = (
    "device_memory",
    "kv_memory",
    "layer_cache",
    "make_caches",
    "reserve",
    "taken_by",
    "workspace",
)

GRAPH_RESERVE = GIB // 2
"""Bytes kept for CUDA graphs, which are captured after the KV caches are there."""
CPU_KV = GIB


def device_memory(device: torch.device) -> tuple[int, int] | None:
    """Bytes that there are, and those in use by whomever; None: nobody can say."""
    if device.type == "cuda":
        spare, total = torch.cuda.mem_get_info(device)
        return int(total), int(total) - int(spare)
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    kib = {name: int(rest.split()[0]) for name, _, rest in (each.partition(":") for each in lines)}
    return kib["MemTotal"] * 1024, (kib["MemTotal"] - kib["MemAvailable"]) * 1024


def taken_by(device: torch.device, work: Callable[[], None]) -> int:
    """Bytes of the device that are gone after `work`; 0 on a CPU."""
    if device.type != "cuda":
        work()
        return 0
    before, _ = torch.cuda.mem_get_info(device)
    work()
    after, _ = torch.cuda.mem_get_info(device)
    return max(int(before) - int(after), 0)


def workspace(model: CausalModel, shape: Shape, block_size: int) -> int:
    """Bytes that the largest step takes beside weights and KV, measured by running it on nothing.
    0 on a CPU, whose memory is not divided beforehand."""
    if model.device.type != "cuda":
        return 0
    torch.cuda.synchronize(model.device)
    torch.cuda.reset_peak_memory_stats(model.device)
    before: int = torch.cuda.memory_allocated(model.device)
    groups = model.config.groups
    caches = make_caches(model, [GroupSpec(2, group.window) for group in groups], block_size, None)
    with torch.inference_mode():
        hidden = model.forward(_blank(model, shape, block_size), caches)
        logits = model.logits(hidden[: shape.max_batch_size])
        torch.softmax(logits, -1)
    torch.cuda.synchronize(model.device)
    peak: int = torch.cuda.max_memory_allocated(model.device)
    return peak - before


def reserve(model: CausalModel, shape: Shape, *, has_graphs: bool) -> int:
    """Bytes kept for decode steps, which first run when the KV caches are there: CUDA graphs, and
    sums of parts over latents."""
    kept, mla = GRAPH_RESERVE if has_graphs else 0, model.config.mla
    if mla is not None:
        heads = model.config.heads // model.site.mesh.tensor.size
        kept += parts_room(shape.max_batch_size, shape.max_model_len, heads, mla.kv_rank)
    return kept


def kv_memory(settings: CudaSettings, device: torch.device, used: int, kept: int) -> int:
    """Bytes for KV. `used`: of weights and workspace. `kept`: what `reserve` says."""
    if settings.kv_gib is not None:
        return int(settings.kv_gib * GIB)
    if device.type != "cuda":
        return CPU_KV
    free, total = torch.cuda.mem_get_info(device)
    others: int = total - free - torch.cuda.memory_reserved(device)
    return int(total * settings.gpu_memory_fraction) - used - max(others, 0) - kept


def make_caches(
    model: CausalModel, specs: Sequence[GroupSpec], block_size: int, kv: torch.dtype | None
) -> tuple[KvCache, ...]:
    """One a layer, not initialised: what no token wrote is never read. `kv` None: the model's
    dtype."""
    config: ModelConfig = model.config
    return tuple(
        layer_cache(model, specs[group].blocks, block_size, kv) for group in config.group_of_layer
    )


def layer_cache(
    model: CausalModel, blocks: int, block_size: int, kv: torch.dtype | None = None
) -> KvCache:
    """Of one layer, as `make_caches` has it."""
    config: ModelConfig = model.config
    heads, *widths = config.kv_shape(model.site.mesh.tensor.size)
    k, v = (
        torch.empty(
            (blocks, block_size, heads, width), device=model.device, dtype=kv or model.dtype
        )
        for width in widths
    )
    return KvCache(k, v)


def _blank(model: CausalModel, shape: Shape, block_size: int) -> Batch:
    """The longest prompt chunk there can be, whose KV goes nowhere."""
    count, groups = shape.max_batch_tokens, len(model.config.groups)

    def zeros(*sizes: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
        return torch.zeros(sizes, device=model.device, dtype=dtype)

    attention = AttentionBatch(
        cu_q=torch.tensor([0, count], dtype=torch.int32, device=model.device),
        kv_lens=torch.full((1,), count, dtype=torch.int32, device=model.device),
        block_table=zeros(1, -(-count // block_size), dtype=torch.int32),
        block_size=block_size,
        max_q=count,
        max_kv=count,
    )
    return Batch(
        ids=zeros(count),
        positions=zeros(count),
        slots=(zeros(count) - 1,) * groups,
        decode=(None,) * groups,
        prefill=(attention,) * groups,
        decode_tokens=0,
        logit_rows=zeros(1),
        span=count if model.site.mesh.data.size > 1 else 0,
    )
