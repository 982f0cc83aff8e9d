"""What the check runs on: versions, the GPU, its clocks now. Starts no CUDA context."""

from __future__ import annotations

import platform
import subprocess
import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from apart import Asked, Found

__all__ = ("clocks", "versions")

PACKAGES = (
    "torch", "triton", "numpy", "msgspec", "safetensors", "nvidia-nccl-cu12", "nvidia-nccl-cu13",
    "flashinfer-python", "sgl-deep-gemm", "sgl-flash-mla", "sgl-deep-ep",
)  # fmt: skip
GPU = "name,driver_version,vbios_version,memory.total,power.limit,clocks.max.sm,clocks.max.mem"
NOW = (
    "clocks.sm,clocks.mem,temperature.gpu,power.draw,memory.used,clocks_event_reasons.active,pstate"
)


def versions(asked: Asked) -> Iterator[Found]:
    """A part: each a (name, value)."""
    import torch

    yield "facts", ("python", platform.python_version())
    yield "facts", ("system", platform.platform())
    for package in PACKAGES:
        try:
            yield "facts", (package, version(package))
        except PackageNotFoundError:
            continue
    yield "facts", ("device", asked.device)
    if asked.device != "cuda":
        return
    yield "facts", ("cuda", torch.version.cuda)
    yield "facts", ("capability", torch.cuda.get_device_capability())
    yield "facts", ("multiprocessors", torch.cuda.get_device_properties(0).multi_processor_count)
    yield "facts", ("nccl", ".".join(map(str, torch.cuda.nccl.version())))
    for name, value in _told(GPU).items():
        yield "facts", (name, value)


def clocks(device: str, begun: float) -> dict[str, Any]:
    """Now, `begun` being when the check did (of the monotonic clock)."""
    found: dict[str, Any] = {"at_s": round(time.monotonic() - begun, 1)}
    return found | (_told(NOW) if device == "cuda" else {})


def _told(query: str) -> dict[str, str]:
    """By nvidia-smi, of the first GPU; {} where it does not answer."""
    command = ["nvidia-smi", "-i", "0", f"--query-gpu={query}", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return {}
    values = done.stdout.strip().split(", ")
    return dict(zip(query.split(","), values, strict=False))
