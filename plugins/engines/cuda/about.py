"""What an engine found and chose when it started: for its status, and one line of the log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import torch

    from tokenwire.kernels.ops import Ops
    from tokenwire.plugins.engines.cuda.load import Loaded
    from tokenwire.plugins.engines.cuda.sizes import Shape

__all__ = ("About", "about", "line")

About: TypeAlias = dict[str, str | int | float]


def about(
    name: str,
    loaded: Loaded,
    found: Shape,
    *,
    kv_dtype: torch.dtype,
    blocks: int,
    block_size: int,
    sizes: Mapping[str, int],
    switches: Mapping[str, str],
) -> About:
    """`blocks`: of the first KV group. `sizes`: bytes of weights, workspace, graphs, KV, ...;
    `switches`: what was decided, in a word each."""
    import torch

    from tokenwire.plugins.engines.cuda.sizes import GIB

    model, seconds = loaded.model, max(loaded.seconds, 1e-9)
    facts: About = {
        "model": name or loaded.config.family,
        "family": loaded.config.family,
        "device": str(model.device),
        "dtype": _name(model.dtype),
        "kv_dtype": _name(kv_dtype),
        "torch": str(torch.__version__),
        "bytes": loaded.bytes,
        "load_seconds": round(loaded.seconds, 3),
        "load_gb_s": round(loaded.bytes / 1e9 / seconds, 3),
    }
    if model.device.type == "cuda":
        facts["gpu"] = torch.cuda.get_device_name(model.device)
    facts |= {f"{part}_gib": round(size / GIB, 4) for part, size in sizes.items()}
    facts |= {
        "kv_blocks": blocks,
        "block_size": block_size,
        "context_length": found.max_model_len,
        "max_batch_size": found.max_batch_size,
        "max_batch_tokens": found.max_batch_tokens,
        "full_context_requests": round(blocks * block_size / found.max_model_len, 1),
        "kernels": kernels(model.ops),
    }
    return facts | dict(switches)


def kernels(ops: Ops) -> str:
    """ "triton: rms_norm rope; reference: sample": each implementation with its ops."""
    by_name: dict[str, list[str]] = {}
    for choice in ops.choices:
        by_name.setdefault(choice.name, []).append(choice.op)
    return "; ".join(f"{name}: {' '.join(names)}" for name, names in by_name.items())


def line(facts: Mapping[str, str | int | float]) -> str:
    """key=value, with quotes around what has spaces."""
    return " ".join(f"{name}={_shown(value)}" for name, value in facts.items())


def _shown(value: str | int | float) -> str:
    text = str(value)
    return f'"{text}"' if " " in text or not text else text


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
