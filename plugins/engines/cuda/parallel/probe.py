"""`tokenwire plan --measure`: starts ranks on this machine's devices and has them time their links.

The ranks are started by torchrun's engine, as those of a group are. An entry point of the group
`tokenwire.links`; imports torch when it is called.
"""

from __future__ import annotations

import importlib.util
import os
from typing import Final

from msgspec.structs import replace

from tokenwire.core.cost.layout import Layout
from tokenwire.core.cost.links import Links, Probe
from tokenwire.core.errors import ConfigError

__all__ = ("probe",)

CPU_RANKS: Final = 2
"""Of a machine without GPUs, where nobody says how many."""
BUDGET_S: Final = 4.0
"""A plan may take longer than a group that starts."""


def probe(asked: Probe) -> Links:
    """Raises ConfigError: there is no torch, there are too few devices, or a rank failed."""
    if importlib.util.find_spec("torch") is None:
        raise ConfigError(
            "--measure needs torch: pip install 'tokenwire[cpu]', or with a GPU 'tokenwire[cuda]'"
        )
    import torch
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    devices = torch.cuda.device_count() if torch.cuda.is_available() else 0
    asked = replace(asked, ranks=_ranks(asked.ranks, devices))
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=asked.ranks or 0,
        run_id=f"links-{os.getpid()}",
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        max_restarts=0,
        monitor_interval=0.05,
        start_method="spawn",
    )
    try:
        found: dict[int, Links] = elastic_launch(config, _rank)(asked, bool(devices))
    except ChildFailedError as error:
        rank, failure = error.get_first_failure()
        raise ConfigError(
            f"--measure: rank {rank} of {asked.ranks} failed: {failure.message or error}"
        ) from error
    return found[0]


def _ranks(wanted: int | None, devices: int) -> int:
    if wanted is None:
        wanted = devices or CPU_RANKS
    if devices == 1 and wanted == 1:
        raise ConfigError(
            "--measure: this machine has one GPU, and a link is between two: plan without it, or "
            "where there are several"
        )
    if devices and wanted > devices:
        raise ConfigError(
            f"--ranks {wanted}: this machine has {devices} GPUs, one for each rank: lower it"
        )
    return wanted


def _rank(asked: Probe, is_cuda: bool) -> Links:
    """Of one rank: rows among all, then sums within domains."""
    import torch

    from tokenwire.plugins.engines.cuda.parallel.measure import measure, measure_sums
    from tokenwire.plugins.engines.cuda.parallel.mesh import join, leave, mesh_of

    ranks = asked.ranks or int(os.environ["WORLD_SIZE"])
    place = f"cuda:{os.environ['LOCAL_RANK']}" if is_cuda else "cpu"
    device = torch.device(place)
    if is_cuda:
        torch.cuda.set_device(device)
    else:
        torch.set_num_threads(1)
    mesh = join(Layout(1, ranks), device)
    try:
        found = measure(mesh, asked.row_bytes, asked.domain, device, budget_s=BUDGET_S)
        cut = min(asked.domain, ranks)
        if cut > 1:
            parts = mesh_of(Layout(cut, ranks // cut), mesh.rank, is_cuda=is_cuda)
            rate, sums = measure_sums(
                parts, asked.row_bytes, asked.domain, device, budget_s=BUDGET_S
            )
            found = replace(found, sums=rate, samples=(*found.samples, *sums))
        return found
    finally:
        leave()
