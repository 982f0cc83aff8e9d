"""Groups of real processes whose ranks are `stub_rank.py`. Imports no torch, as no front does."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from tokenwire.core.host import lone_services
from tokenwire.core.ports.engine import Engine
from tokenwire.plugins.engines.cuda.parallel.front.building import build_groups
from tokenwire.plugins.engines.cuda.settings import CudaSettings

__all__ = ("STUB", "folder_of", "stubs")

STUB = "tests.plugins.engines.cuda.parallel.stub_rank"


def stubs(strategy: str, model: str = "", **fields: object) -> Engine:
    settings = CudaSettings(
        path=str(Path(__file__).parent),
        device="cpu",
        parallel_strategy=strategy,
        grammar="none",
        **fields,
    )
    return build_groups(settings, replace(lone_services(), model=model), program=STUB)


def folder_of(engine: Engine) -> str:
    """Where its orders and its socket are."""
    return str(engine._worker._groups.instances[0]._folder)
