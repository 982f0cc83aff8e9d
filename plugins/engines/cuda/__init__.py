"""Our own engine: paged KV, continuous batching, our kernels; on a GPU, or on a CPU."""

from __future__ import annotations

from collections.abc import Iterable

from tokenwire.core.factory import Factory, Services
from tokenwire.core.hookspecs import impl
from tokenwire.core.ports.engine import Engine
from tokenwire.plugins.engines.cuda.settings import CudaSettings

__all__ = ("register_engines",)


def _build(settings: CudaSettings, services: Services) -> Engine:
    from tokenwire.plugins.engines.cuda.build import build

    return build(settings, services)


@impl
def register_engines() -> Iterable[Factory[Engine]]:
    return (
        Factory(
            "cuda",
            CudaSettings,
            _build,
            summary="paged KV, continuous batching, own kernels; a GPU, or a CPU",
            device=True,
        ),
    )
