"""The engine kit: every law of the engine port, as a named check for any engine.

    def test_conforms():
        run_engine_kit(lambda: MyEngine(...))

A capability that the card does not declare must be refused, one that it declares must be honoured.
Knows no engine.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager

from tokenwire.core.host import Host, lone_services
from tokenwire.core.ports.engine import Engine
from tokenwire.core.testing.engine_delta_laws import DELTAS
from tokenwire.core.testing.engine_field_laws import FIELDS
from tokenwire.core.testing.engine_flow_laws import FLOW
from tokenwire.core.testing.engine_probe import EngineProbe, Make
from tokenwire.core.testing.laws import checking
from tokenwire.core.token_ids import TokenIds

__all__ = ("LAWS", "conform", "run_engine_kit")

CHECKS = {law.__name__: law for law in (*DELTAS, *FIELDS, *FLOW)}
LAWS: tuple[str, ...] = tuple(CHECKS)
"""Their names, in the order in which they are checked."""


def run_engine_kit(
    make: Make,
    *,
    prompts: Sequence[TokenIds] = (),
    laws: Iterable[str] = LAWS,
    tokens: int = 8,
    jobs: int = 1000,
    patience_s: float = 60.0,
    quiet_s: float = 0.05,
) -> tuple[str, ...]:
    """The laws that hold; those of capabilities that the card does not declare are left out.
    Raises LawBroken for the first that does not.

    `make` gives a fresh engine for each law, or a context that closes it; else it is drained.
    `prompts`: three to use; default: some ids of the vocabulary. `tokens`: how many ids a job
    makes, 5 or more. `jobs`: how many run together. `patience_s`: how long an answer may take.
    `quiet_s`: how long to wait where nothing should come. Runs event loops of its own, so not to
    be called from one.
    """
    return tuple(
        name
        for name in laws
        if asyncio.run(
            _holds(
                make,
                name,
                prompts=prompts,
                tokens=tokens,
                jobs=jobs,
                patience_s=patience_s,
                quiet_s=quiet_s,
            )
        )
    )


async def _holds(
    make: Make,
    name: str,
    *,
    prompts: Sequence[TokenIds],
    tokens: int,
    jobs: int,
    patience_s: float,
    quiet_s: float,
) -> bool:
    """False for a law that had nothing to check."""
    async with _opened(make) as engine:
        probe = EngineProbe(
            engine,
            name,
            prompts=prompts,
            tokens=tokens,
            jobs=jobs,
            patience_s=patience_s,
            quiet_s=quiet_s,
        )
        async with probe.reading():
            with checking(probe):
                await CHECKS[name](probe)
        return not probe.was_skipped


@asynccontextmanager
async def _opened(make: Make) -> AsyncIterator[Engine]:
    made = make()
    if not isinstance(made, Engine):
        async with made as engine:
            yield engine
        return
    try:
        yield made
    finally:
        await asyncio.wait_for(made.drain(0), 30)


def conform(host: Host, name: str) -> tuple[str, ...]:
    """Runs the kit for an installed engine with its default settings; the laws that hold.

    Raises ConfigError for one that cannot be built without a model's files.
    """
    services = lone_services()
    return run_engine_kit(
        lambda: host.engines.build(name, {}, services, f"engine.{name}"), jobs=200
    )
