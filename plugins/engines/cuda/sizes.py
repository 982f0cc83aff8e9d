"""How many of what: sequences, tokens, KV blocks, from settings, the model's sizes and the memory.

Pure arithmetic, validated together; knows no torch and no device.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import final

from msgspec import Struct

from tokenwire.core.errors import ConfigError
from tokenwire.plugins.engines.cuda.models.config import KvGroup, ModelConfig
from tokenwire.plugins.engines.cuda.policy.groups import most_blocks
from tokenwire.plugins.engines.cuda.policy.limits import GroupSpec, Limits
from tokenwire.plugins.engines.cuda.settings import CudaSettings

__all__ = ("Shape", "check_room", "group_blocks", "kv_token_bytes", "limits", "shape", "shortened")

GIB = 1 << 30


@final
class Shape(Struct, frozen=True):
    """What a step holds, before memory is looked at."""

    max_batch_size: int
    max_batch_tokens: int
    max_model_len: int
    is_len_given: bool
    """`max_model_len` was asked for, and is not lowered to what memory holds."""


def shape(
    settings: CudaSettings, config: ModelConfig, context: int | None, *, is_cpu: bool
) -> Shape:
    """`context`: as the deployment says; None: the model's. Raises ConfigError where values cannot
    go together."""
    size = settings.max_batch_size or (64 if is_cpu else 256)
    tokens = settings.max_batch_tokens or max(512 if is_cpu else 8192, size)
    asked = settings.max_model_len or context
    length = asked or config.context_length
    if length > config.context_length:
        raise ConfigError(
            f"engine cuda: max_model_len is {length}, the model was made for "
            f"{config.context_length}: lower it"
        )
    if tokens < size:
        raise ConfigError(
            f"engine cuda: max_batch_tokens is {tokens} and max_batch_size {size}: wanted at "
            "least one token a sequence; raise the first or lower the second"
        )
    return Shape(size, tokens, length, asked is not None)


def kv_token_bytes(config: ModelConfig, group: KvGroup, element: int, slices: int = 1) -> int:
    """KV bytes of one token in one group's layers on one rank of so many slices, with `element`
    bytes a number."""
    return len(group.layers) * sum(config.kv_widths(slices)) * element


def check_room(settings: CudaSettings, room: int, parts: Mapping[str, int]) -> None:
    """Raises ConfigError where nothing of the device is left for KV. `parts`: bytes of what else
    is there, by its name."""
    if room > 0:
        return
    taken = " and ".join(f"{name} ({size / GIB:.2f} GiB)" for name, size in parts.items())
    raise ConfigError(
        f"engine cuda: gpu_memory_fraction {settings.gpu_memory_fraction} lacks "
        f"{-room / GIB:.2f} GiB for {taken}, and leaves nothing for KV: raise it, lower "
        "max_batch_tokens, or end what else uses the device"
    )


def group_blocks(
    found: Shape,
    config: ModelConfig,
    block_size: int,
    element: int,
    memory: int,
    *,
    slices: int = 1,
) -> tuple[GroupSpec, ...]:
    """KV blocks of every group within `memory` bytes of each of so many slices, null blocks
    included.

    A group with a window never needs more than all running sequences hold in it; what it does not
    need, the others get.
    """
    groups = config.groups
    bytes_of = [kv_token_bytes(config, group, element, slices) * block_size for group in groups]
    most = [
        found.max_batch_size
        * most_blocks(group.window, found.max_model_len, found.max_batch_tokens, block_size)
        for group in groups
    ]
    counts = [0] * len(groups)
    left, open_groups = memory, list(range(len(groups)))
    while open_groups:
        each = left // sum(bytes_of[index] for index in open_groups)
        full = [index for index in open_groups if groups[index].window and most[index] < each]
        if not full:
            for index in open_groups:
                counts[index] = each
            break
        for index in full:
            counts[index] = most[index]
            left -= most[index] * bytes_of[index]
            open_groups.remove(index)
    return tuple(
        GroupSpec(blocks=count + 1, window=group.window)
        for count, group in zip(counts, groups, strict=True)
    )


def shortened(found: Shape, specs: Sequence[GroupSpec], block_size: int, memory: int) -> Shape:
    """The shape whose longest sequence fits. Raises ConfigError where the length was asked for, or
    where not even a short one fits."""
    length = found.max_model_len
    while length >= block_size and not _fits(length, found, specs, block_size):
        length = length * 3 // 4
    if length == found.max_model_len:
        return found
    if found.is_len_given or length < block_size:
        raise ConfigError(
            f"engine cuda: one sequence of max_model_len {found.max_model_len} needs more KV "
            f"blocks than {memory / GIB:.2f} GiB hold ({specs[0].blocks - 1} of {block_size} "
            f"tokens): lower max_model_len, or raise kv_gib or gpu_memory_fraction"
        )
    return Shape(found.max_batch_size, found.max_batch_tokens, length, is_len_given=False)


def _fits(length: int, found: Shape, specs: Sequence[GroupSpec], block_size: int) -> bool:
    return all(
        most_blocks(spec.window, length, found.max_batch_tokens, block_size) <= spec.blocks - 1
        for spec in specs
    )


def limits(found: Shape, settings: CudaSettings) -> Limits:
    return Limits(
        max_batch_size=found.max_batch_size,
        max_batch_tokens=found.max_batch_tokens,
        block_size=settings.block_size,
        max_model_len=found.max_model_len,
        long_prefill_tokens=settings.long_prefill_tokens,
    )
