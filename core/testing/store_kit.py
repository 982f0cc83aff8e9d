"""The store kit: every law of the store port, as a named check that any store can be put through.

    @asynccontextmanager
    async def make():                     # a store to use; a shared one sees what another made
        store = MyStore(...)
        yield store
        await store.close()

    def test_conforms():
        run_store_kit(make)

Knows no store. Uses namespaces of its own, so it can run against a server that is in use.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

from tokenwire.core.errors import ConfigError, StoreError
from tokenwire.core.host import Host, lone_services
from tokenwire.core.ports.store import Store
from tokenwire.core.testing.laws import run_laws
from tokenwire.core.testing.store_model import model
from tokenwire.core.testing.store_op_laws import CONCURRENT, OPS
from tokenwire.core.testing.store_probe import Advance, Make, StoreProbe
from tokenwire.core.testing.store_value_laws import VALUES

__all__ = ("LAWS", "conform", "run_store_kit")

Law: TypeAlias = Callable[[StoreProbe], Coroutine[Any, Any, None]]

LAWS: tuple[str, ...] = tuple(law.__name__ for law in (*VALUES, *OPS, model, *CONCURRENT))
"""Their names, in the order in which they are checked."""


def run_store_kit(
    make: Make,
    *,
    laws: Iterable[str] = LAWS,
    advance: Advance = asyncio.sleep,
    examples: int = 100,
) -> tuple[str, ...]:
    """The laws that hold. Raises LawBroken for the first that does not.

    `make` opens a store and closes it at the end; each law opens its own. `advance(seconds)` lets
    the store's time pass: sleeping, unless the store has a clock that a test can turn. `examples`
    is how many sequences of calls are compared with a model. Runs event loops of its own, so not
    to be called from one.
    """
    checks = {law.__name__: _on_a_loop(law) for law in (*VALUES, *OPS, *CONCURRENT)}
    checks[model.__name__] = lambda probe: model(probe, examples)
    return run_laws(laws, checks, lambda law: StoreProbe(make, advance, law))


def _on_a_loop(law: Law) -> Callable[[StoreProbe], None]:
    return lambda probe: asyncio.run(law(probe))


def conform(host: Host, name: str) -> tuple[str, ...]:
    """Runs the kit for an installed store with its default settings; the laws that hold.

    Raises ConfigError for one that cannot be reached with them.
    """

    @asynccontextmanager
    async def make() -> AsyncIterator[Store]:
        store = host.stores.build(name, {}, lone_services(), f"store.{name}")
        try:
            yield store
        finally:
            await store.close()

    async def reach() -> None:
        async with make() as store:
            await store.get("conform", "reach")

    try:
        asyncio.run(reach())
    except StoreError as error:
        raise ConfigError(f"conform: store '{name}' with its default settings: {error}") from error
    return run_store_kit(make)
