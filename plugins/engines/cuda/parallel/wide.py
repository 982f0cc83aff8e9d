"""May a group whose experts lie beyond one domain start? Measures its links, asks the cost model,
and obeys `wide_ep`: refuse, warn or fall back. Loads nothing.

The judgement is the planner's (core/planning/verdicts.py), of this one group, with the measured
links in place of a datasheet's.
"""

from __future__ import annotations

import logging
import math
import os
from typing import Final, Literal, TypeAlias

import torch
from msgspec import Struct, json
from msgspec.structs import replace

from tokenwire.core.cost.exchange import Dispatch, row_bytes
from tokenwire.core.cost.gpus import GPUS, Cluster, Gpu, gpu_named
from tokenwire.core.cost.layout import Layout
from tokenwire.core.cost.links import Links
from tokenwire.core.cost.shape import KvDtype, ModelShape
from tokenwire.core.errors import ConfigError
from tokenwire.core.planning.request import PlanRequest, Pool
from tokenwire.core.planning.verdicts import Verdict, judged
from tokenwire.plugins.engines.cuda.load import keeps_fp8
from tokenwire.plugins.engines.cuda.models.config import ModelConfig
from tokenwire.plugins.engines.cuda.models.cost_shape import shape_of
from tokenwire.plugins.engines.cuda.parallel.fallen import FellBack
from tokenwire.plugins.engines.cuda.parallel.frames import Instead
from tokenwire.plugins.engines.cuda.parallel.measure import measure
from tokenwire.plugins.engines.cuda.parallel.mesh import Mesh
from tokenwire.plugins.engines.cuda.parallel.slowed import SlowedExchange
from tokenwire.plugins.engines.cuda.settings import CudaSettings

__all__ = ("LayoutRefused", "WidePolicy", "WideVerdict", "decide", "judge", "kind_of")

LOG = logging.getLogger("tokenwire.engine.parallel")

WidePolicy: TypeAlias = Literal["refuse", "warn", "fallback"]
PROMPT, ANSWER = 4096, 1024
"""Tokens of the requests that a layout is judged by, where the context holds them."""
TOKENS_PER_S: Final = 20.0
"""Of a user, where no `slo` says more."""
STANDS_IN: Final = "h200"
"""For devices whose figures are not known, CPUs among them."""


class LayoutRefused(ConfigError):
    """The layout's network would hold it back, and the settings say that it must not start so."""


class WideVerdict(Struct, frozen=True):
    """`go` says nothing; every other action has a reason, for whoever runs the group."""

    action: Literal["go", "warn", "refuse", "fallback"]
    reason: str = ""
    instead: Layout | None = None
    """What to take in its place; None: there is nothing that these devices hold evenly."""


def judge(
    shape: ModelShape,
    layout: Layout,
    links: Links,
    policy: WidePolicy = "refuse",
    *,
    gpu: Gpu | None = None,
    kv_dtype: KvDtype = "bf16",
    fraction: float = 0.88,
    tokens_per_s: float = TOKENS_PER_S,
    dispatch: Dispatch = "pair",
    machines: int = 1,
) -> WideVerdict:
    """Pure. `links` tell the domain, too. `gpu`: whose computing it is; None: h200's. A group over
    several machines cannot fall back: each of them would need a server of its own."""
    if shape.moe is None or layout.data == 1 or layout.gpus <= links.domain:
        return WideVerdict("go")
    kind = gpu or gpu_named(STANDS_IN)
    pool = Pool(Cluster.of(kind, domain=links.domain, links=links))
    most = shape.max_context or PROMPT + ANSWER
    answer = min(ANSWER, max(most // 5, 1))
    prompt = max(min(PROMPT, most - answer), 1)
    request = PlanRequest(
        shape,
        pool,
        pool,
        gpus=layout.gpus,
        tpot=1 / tokens_per_s,
        input=prompt,
        output=answer,
        context=min(prompt + answer // 2, most),
        precision=shape.precision,
        kv_dtype=kv_dtype,
        fraction=fraction,
        dispatch=dispatch,
    )
    verdicts = judged(request, layout)
    (own,) = (each for each in verdicts if each.layout == layout)
    if not own.refused:
        return WideVerdict("go")
    instead = _instead(own)
    remark = "" if gpu else f"; computing reckoned as an {kind.name}'s"
    if policy == "fallback" and (instead is None or machines > 1):
        policy = "refuse"
    reason = _why(own, links, remark)
    if policy != "fallback":
        reason += f". {_advice(own, instead, machines, is_started=policy == 'warn')}"
    return WideVerdict(policy, reason, instead)


def decide(mesh: Mesh, config: ModelConfig, settings: CudaSettings, device: torch.device) -> None:
    """All ranks call it, before weights are loaded; the first decides for all. Raises on every rank
    LayoutRefused, or FellBack: the front then starts another layout. Else they go on."""
    layout, domain = mesh.layout, settings.domain or int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    if config.mixture is None or layout.data == 1 or layout.gpus <= domain:
        return
    if not keeps_fp8(settings.quantisation, config, device):
        config = replace(config, quantisation=None)
    there, _ = row_bytes(config.hidden, fp8=config.quantisation is not None)
    slow = settings.slow_link_gb_s
    data = None if slow is None else SlowedExchange(mesh, domain, slow * 1e9)
    links = measure(mesh, math.ceil(there), domain, device, data=data)
    if mesh.rank:
        said = mesh.world_host.broadcast_bytes()
        _obey(json.decode(said, type=WideVerdict), layout)
        return
    slo = settings.slo
    found = judge(
        shape_of(config),
        layout,
        links,
        settings.wide_ep,
        gpu=kind_of(device),
        kv_dtype="fp8" if settings.kv_dtype == "fp8" else "bf16",
        fraction=settings.gpu_memory_fraction,
        tokens_per_s=(slo and slo.user_tokens_per_s) or TOKENS_PER_S,
        machines=settings.nodes,
    )
    LOG.info(
        "links %s: %s in a domain of %d, %s beyond, %.0f us",
        links.device,
        _rate(links.within),
        domain,
        _rate(links.across),
        links.latency * 1e6,
    )
    if found.reason and found.action != "refuse":
        LOG.warning("%s", found.reason)
    mesh.world_host.broadcast_bytes(json.encode(found))
    _obey(found, layout)


def kind_of(device: torch.device) -> Gpu | None:
    """The kind of GPU, by the name that the driver gives it; None: it is not a known one."""
    if device.type != "cuda":
        return None
    name = torch.cuda.get_device_name(device).lower()
    # Why the longest first: a GB200 is no B200.
    known = sorted(GPUS, key=lambda each: -len(each.name))
    return next((each for each in known if each.name in name), None)


def _obey(verdict: WideVerdict, layout: Layout) -> None:
    if verdict.action == "refuse":
        raise LayoutRefused(verdict.reason)
    if verdict.action == "fallback" and verdict.instead is not None:
        name, groups = verdict.instead.name, layout.gpus // verdict.instead.gpus
        raise FellBack(Instead(name, groups, verdict.reason))


def _instead(own: Verdict) -> Layout | None:
    """The mixed layout, else the best other, of those that share these devices evenly."""
    for each in (own.mixed, own.instead):
        if each is not None and own.layout.gpus % each.gpus == 0:
            return each
    return None


def _why(own: Verdict, links: Links, remark: str) -> str:
    said = (
        f"{own.layout.name} reaches beyond its domains of {links.domain} and is held back: "
        f"{own.refused} (links measured: {links.device}{remark})"
    )
    if (pair := links.slowest) is None:
        return said
    return f"{said}; the slowest are domains {pair.first} and {pair.second}, {_rate(pair.rate)}"


def _advice(own: Verdict, instead: Layout | None, machines: int, *, is_started: bool) -> str:
    warn = "" if is_started else ", or set wide_ep to warn to start it all the same"
    if instead is None:
        return f"No other layout shares its devices evenly: take more or fewer{warn}"
    groups = own.layout.gpus // instead.gpus
    strategy = f"parallel_strategy {instead.name}"
    if machines > 1:
        return f"Give each machine a server of its own with {strategy}{warn}"
    count = "" if groups == 1 else f" and instance_count times {groups}"
    return f"Set {strategy}{count}, or wide_ep to fallback, which does that{warn}"


def _rate(value: float | None) -> str:
    return "no link" if value is None else f"{value / 1e9:.3g} GB/s"
