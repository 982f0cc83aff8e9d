"""The reference engine: any causal model that transformers loads. Slow, plain, right."""

from __future__ import annotations

from collections.abc import Iterable

from tokenwire.core.factory import Factory, Services
from tokenwire.core.hookspecs import impl
from tokenwire.core.ports.engine import Engine
from tokenwire.plugins.engines.reference.settings import ReferenceSettings

__all__ = ("register_engines",)


def _build(settings: ReferenceSettings, services: Services) -> Engine:
    from tokenwire.plugins.engines.reference.build import build

    return build(settings, services)


@impl
def register_engines() -> Iterable[Factory[Engine]]:
    return (
        Factory(
            "reference",
            ReferenceSettings,
            _build,
            summary="any causal model that transformers loads, one token at a time",
            device=True,
        ),
    )
