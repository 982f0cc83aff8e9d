"""Builds the engine of a layout with several ranks: what they are told, and their start."""

from __future__ import annotations

import logging

from msgspec.structs import replace

from tokenwire.core.errors import ConfigError
from tokenwire.core.factory import Services
from tokenwire.core.ports.engine import Engine
from tokenwire.core.threaded_engine import ThreadedEngine
from tokenwire.plugins.engines.cuda.about import line
from tokenwire.plugins.engines.cuda.build import revision_of, weights_of
from tokenwire.plugins.engines.cuda.parallel.fallen import FellBack
from tokenwire.plugins.engines.cuda.parallel.frames import Instead
from tokenwire.plugins.engines.cuda.parallel.front.hub import Groups
from tokenwire.plugins.engines.cuda.parallel.front.launching import Launch, launch_process
from tokenwire.plugins.engines.cuda.parallel.front.worker import GroupWorker
from tokenwire.plugins.engines.cuda.parallel.order import RANK, Order, pieces_of
from tokenwire.plugins.engines.cuda.progress import bar
from tokenwire.plugins.engines.cuda.settings import CudaSettings

__all__ = ("build_groups",)

LOG = logging.getLogger("tokenwire.engine.cuda")


def build_groups(
    settings: CudaSettings,
    services: Services,
    *,
    launch: Launch = launch_process,
    program: str = RANK,
    why: str = "",
) -> Engine:
    """Starts `instance_count` groups, and waits until all their ranks are ready. Raises
    ConfigError: what the first rank that failed said. `program`: what each rank runs, a module.
    `why`: of a layout that the settings did not name at first."""
    if settings.node:
        raise ConfigError(
            f"engine cuda: node is {settings.node}: the server runs on machine 0; here run "
            f"`tokenwire ranks FILE --node {settings.node}`"
        )
    path = weights_of(settings, services)
    has_grammars = settings.grammar != "none" and settings.task == "generate"
    order = Order(
        settings=replace(settings, path=str(path.absolute())),
        model=services.model,
        revision=revision_of(path),
        context_length=services.context_length,
        pieces=pieces_of(services.tokenizer, has_grammars=has_grammars),
        program=program,
    )
    ranks, count = settings.layout.gpus, settings.instance_count
    try:
        with bar(path.name) as told:
            groups = Groups(order, ranks, count, launch, told)
            groups.open()
    except FellBack as fallen:
        other = _other(settings, fallen.instead)
        LOG.warning("%s starts instead: %s", other.parallel_strategy, fallen)
        return build_groups(other, services, launch=launch, program=program, why=str(fallen))
    card = groups.card
    assert card is not None
    worker = GroupWorker(groups, card, {"fell_back": why} if why else {})
    LOG.info("ready %s", line(worker.status().about))
    slots = sum(part.slots for each in groups.instances for part in each.parts)
    return ThreadedEngine(worker, card, slots + settings.max_waiting, "cuda")


def _other(settings: CudaSettings, instead: Instead) -> CudaSettings:
    """Each group that there was to be becomes so many of another layout."""
    return replace(
        settings,
        parallel_strategy=instead.layout,
        instance_count=settings.instance_count * instead.groups,
        # Why: judged once is enough. What is better than the layout that was wanted may start.
        wide_ep="warn",
    )
