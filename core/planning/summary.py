"""A plan in flat rows, as text and JSON show it. Chooses nothing."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from tokenwire.core.cost.gpus import Cluster, Figure
from tokenwire.core.cost.links import Links, Way
from tokenwire.core.cost.weights import sequence_bytes, weight_bytes
from tokenwire.core.planning.holding import weights_note
from tokenwire.core.planning.plan import Plan
from tokenwire.core.planning.points import Limit, Point
from tokenwire.core.planning.pools import Costs, Pools, Split
from tokenwire.core.planning.verdicts import Verdict

__all__ = (
    "CurvePoint",
    "GpuRow",
    "LinkRow",
    "LinkRows",
    "PoolRow",
    "Row",
    "Summary",
    "summary_of",
)

LinkMark: TypeAlias = Literal["datasheet", "said", "measured"]


class LinkRow(Struct, frozen=True):
    """One message size of a link that was measured."""

    way: Way
    rows: int
    bytes: int
    """That one rank sends."""
    ms: float
    gb_s: float


class LinkRows(Struct, frozen=True):
    """The links that were measured, in GB/s of a rank; None: there is none among these ranks."""

    ranks: int
    domain: int
    row_bytes: int
    device: str
    within_gb_s: float | None
    across_gb_s: float | None
    sums_gb_s: float | None
    latency_us: float
    """Of the smallest message."""
    samples: tuple[LinkRow, ...]


class GpuRow(Struct, frozen=True):
    """A kind of GPU, as it was reckoned with."""

    name: str
    memory_gb: float
    bandwidth: Figure
    bf16: Figure
    fp8: Figure | None
    nvlink_gb_s: float
    nvlink_mark: LinkMark


class Row(Struct, frozen=True):
    """One layout. `batch` is 0, and what follows from it, where none keeps the promise."""

    layout: str
    gpus: int
    groups: int
    weights_gb: float
    room: int
    batch: int
    tokens_per_s_gpu: float
    tokens_per_s_user: float
    step_ms: float
    limit: Limit | None
    refused: str
    instead: str
    mixed: str
    """The best mixed layout in its place, where there is one."""


class CurvePoint(Struct, frozen=True):
    layout: str
    batch: int
    tokens_per_s_gpu: float
    tokens_per_s_user: float
    picked: bool


class PoolRow(Struct, frozen=True):
    """Prefill beside decode."""

    prefill_gpu: str
    prefill_layout: str
    prefill_tokens_per_s_gpu: float
    decode_gpus_per_prefill_gpu: float
    requests_per_s_balanced: float
    requests_per_s_even: float
    split: Split | None
    prefill_groups_beside: int
    kv_mb: float
    kv_ms: float
    costs_per_million: Costs | None


class Summary(Struct, frozen=True):
    model: str
    precision: str
    kv_dtype: str
    gpu: str
    gpus: int
    domain: int
    nic_gb_s: float
    nic_mark: LinkMark
    tpot_ms: float
    input: int
    output: int
    context: int
    objective: str
    efficiency: float
    weights_gb: float
    """Of the whole model, once."""
    weights_note: str
    """Where that is not what is published, or not what the engine holds."""
    kv_kb_token: float
    """Of a token in a context of this length, all layers, uncut."""
    fits: bool
    smallest_gpus: int | None
    smallest_layout: str | None
    links: LinkRows | None
    """None: nothing was measured."""
    figures: tuple[GpuRow, ...]
    """Of each kind once."""
    layouts: tuple[Row, ...]
    curve: tuple[CurvePoint, ...]
    pick: CurvePoint | None
    pools: PoolRow | None


def summary_of(plan: Plan) -> Summary:
    request, cluster = plan.request, plan.request.decode.cluster
    kv = sequence_bytes(request.shape, request.kv_dtype, request.context) / request.context
    return Summary(
        model=request.shape.name,
        precision=request.precision,
        kv_dtype=request.kv_dtype,
        gpu=cluster.gpu.name,
        gpus=request.gpus,
        domain=cluster.domain,
        nic_gb_s=round(cluster.nic / 1e9, 3),
        nic_mark=_nic_mark(cluster),
        tpot_ms=round(request.tpot * 1e3, 3),
        input=request.input,
        output=request.output,
        context=request.context,
        objective=request.objective,
        efficiency=request.efficiency,
        weights_gb=round(weight_bytes(request.shape, request.precision) / 1e9, 1),
        weights_note=weights_note(request.shape, request.precision),
        kv_kb_token=round(kv / 1e3, 1),
        fits=plan.fits,
        smallest_gpus=plan.smallest.gpus if plan.smallest else None,
        smallest_layout=plan.smallest.name if plan.smallest else None,
        links=None if cluster.links is None else _links(cluster.links),
        figures=tuple(_gpu(each) for each in _kinds(cluster, request.prefill.cluster)),
        layouts=tuple(_row(each, request.efficiency) for each in plan.verdicts),
        curve=tuple(_point(each, plan.pick) for each in plan.curve),
        pick=None if plan.pick is None else _point(plan.pick, plan.pick),
        pools=None if plan.pools is None else _pools(plan, plan.pools),
    )


def _kinds(*clusters: Cluster) -> tuple[Cluster, ...]:
    """One of each kind of GPU."""
    return tuple({each.gpu.name: each for each in reversed(clusters)}.values())[::-1]


def _gpu(cluster: Cluster) -> GpuRow:
    gpu, (inside, _) = cluster.gpu, cluster.measured
    return GpuRow(
        gpu.name,
        gpu.memory / 1e9,
        gpu.bandwidth,
        gpu.bf16,
        gpu.fp8,
        round(cluster.inside / 1e9, 3),
        "measured" if inside else "datasheet",
    )


def _nic_mark(cluster: Cluster) -> LinkMark:
    _, beyond = cluster.measured
    if beyond:
        return "measured"
    return "datasheet" if cluster.nic == cluster.gpu.nic else "said"


def _links(links: Links) -> LinkRows:
    return LinkRows(
        links.ranks,
        links.domain,
        links.row_bytes,
        links.device,
        _giga(links.within),
        _giga(links.across),
        _giga(links.sums),
        round(links.latency * 1e6, 1),
        tuple(
            LinkRow(
                each.way, each.rows, each.sent, round(each.seconds * 1e3, 3), _giga(each.rate) or 0
            )
            for each in links.samples
        ),
    )


def _giga(rate: float | None) -> float | None:
    return None if rate is None else round(rate / 1e9, 3)


def _row(verdict: Verdict, efficiency: float) -> Row:
    best = verdict.best
    return Row(
        layout=verdict.layout.name,
        gpus=verdict.layout.gpus,
        groups=verdict.instances,
        weights_gb=round(verdict.weights / 1e9, 1),
        room=verdict.room,
        batch=best.batch if best else 0,
        tokens_per_s_gpu=round(best.per_gpu, 1) if best else 0.0,
        tokens_per_s_user=round(best.per_user, 1) if best else 0.0,
        step_ms=round(best.step.seconds / efficiency * 1e3, 2) if best else 0.0,
        limit=best.limit if best else None,
        refused=verdict.refused,
        instead=verdict.instead.name if verdict.instead else "",
        mixed=verdict.mixed.name if verdict.mixed else "",
    )


def _point(point: Point, picked: Point | None) -> CurvePoint:
    return CurvePoint(
        point.layout.name,
        point.batch,
        round(point.per_gpu, 1),
        round(point.per_user, 1),
        point == picked,
    )


def _pools(plan: Plan, pools: Pools) -> PoolRow:
    split, costs = pools.split, pools.costs
    return PoolRow(
        prefill_gpu=plan.request.prefill.cluster.gpu.name,
        prefill_layout=pools.prefill_layout.name,
        prefill_tokens_per_s_gpu=round(pools.prefill_per_gpu, 1),
        decode_gpus_per_prefill_gpu=round(pools.decode_per_prefill, 3),
        requests_per_s_balanced=round(pools.requests_balanced, 2),
        requests_per_s_even=round(pools.requests_even, 2),
        split=split and replace(split, requests_per_s=round(split.requests_per_s, 2)),
        prefill_groups_beside=pools.prefill_groups_beside,
        kv_mb=round(pools.kv_bytes / 1e6, 1),
        kv_ms=round(pools.kv_seconds * 1e3, 2),
        costs_per_million=costs
        and Costs(round(costs.input, 6), round(costs.output, 6), round(costs.blended, 6)),
    )
