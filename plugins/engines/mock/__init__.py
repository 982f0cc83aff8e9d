"""The mock engine: no model. It says what a script tells it, else one fixed sentence."""

from __future__ import annotations

from collections.abc import Iterable

from tokenwire.core.factory import Factory, Services
from tokenwire.core.hookspecs import impl
from tokenwire.core.ports.engine import Engine
from tokenwire.plugins.engines.mock.settings import MockSettings

__all__ = ("register_engines",)


def _build(settings: MockSettings, services: Services) -> Engine:
    from tokenwire.plugins.engines.mock.build import build

    return build(settings, services)


@impl
def register_engines() -> Iterable[Factory[Engine]]:
    return (
        Factory(
            "mock",
            MockSettings,
            _build,
            summary="no model: says what a script tells it",
        ),
    )
