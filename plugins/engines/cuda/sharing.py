"""Settings of experts that ranks share, against the model: none of them is without effect. Knows no
torch."""

from __future__ import annotations

import logging

from tokenwire.core.cost.layout import Layout
from tokenwire.core.errors import ConfigError
from tokenwire.plugins.engines.cuda.models.config import ModelConfig
from tokenwire.plugins.engines.cuda.settings import CudaSettings

__all__ = ("want_shared",)

LOG = logging.getLogger("tokenwire.engine.cuda")


def want_shared(config: ModelConfig, settings: CudaSettings, layout: Layout) -> None:
    """Raises ConfigError where redundant experts or moves are asked for, and no ranks share any;
    or for more replicas than there are ranks that lack one. Warns of a dense model in parts."""
    mixture = config.mixture
    asked = [
        name
        for name, is_set in (
            ("redundant_experts", settings.redundant_experts > 0),
            ("rebalance", settings.rebalance is not None),
        )
        if is_set
    ]
    if mixture is None or layout.data == 1:
        if asked:
            why = (
                f"{config.family} has no experts"
                if mixture is None
                else f"all experts are on every rank of {layout.name}"
            )
            hint = "" if mixture is None else ", or set parallel_strategy to DEP_m"
            raise ConfigError(f"engine cuda: {asked[0]}: {why}: leave it out{hint}")
        if layout.data > 1:
            LOG.warning(
                "%s has no experts to share: the parts of %s only wait for each other; "
                "instance_count: %d gives as many without that",
                config.family,
                layout.name,
                layout.data,
            )
        return
    most = mixture.experts * (layout.data - 1)
    if settings.redundant_experts > most:
        raise ConfigError(
            f"engine cuda: redundant_experts: wanted at most {most}, which is each of "
            f"{mixture.experts} experts on each of {layout.data} parts; got "
            f"{settings.redundant_experts}"
        )
