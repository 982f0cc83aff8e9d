"""Node files, as YAML, of a plan's pick and of its pool for prefill. Writes to no disk."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tokenwire.core.cost.layout import Layout
from tokenwire.core.planning.holding import is_dequantised, weights_note
from tokenwire.core.planning.plan import Plan
from tokenwire.core.planning.points import Point
from tokenwire.core.planning.pools import STEP_TOKENS, Pools
from tokenwire.core.planning.request import PlanRequest, Pool

__all__ = ("node_file", "prefill_file")


def node_file(plan: Plan, picked: Point, path: str | None) -> str:
    """Keys as an engine node has them. `path`: the checkpoint, where the plan was made from one."""
    request, layout = plan.request, picked.layout
    groups = request.gpus // layout.gpus
    each = request.output / picked.per_gpu
    lines = [
        f"# Planned for {request.shape.name} on {request.gpus} {request.decode.cluster.gpu.name}: "
        f"{picked.per_gpu:,.0f} tokens/s a GPU, {picked.per_user:.1f} a user, at best, of decode.",
        *_beside(plan),
        *_weights(request),
        "# The engine has no pools yet: a node of role full starts, and does the prompts too.",
        *_keys(request, request.decode, layout, groups, path, role="full"),
        f"max_batch_size: {picked.batch}  # sequences of each part with a batch of its own",
        "slo:",
        f"  user_tokens_per_s: {1 / request.tpot:g}",
        f"  requests_per_s: {groups * layout.gpus / each:.4g}  # if prefill keeps up",
    ]
    return "\n".join(lines) + "\n"


def prefill_file(plan: Plan, pools: Pools, path: str | None) -> str:
    """The pool that keeps the pick's GPUs busy."""
    request, layout, groups = plan.request, pools.prefill_layout, pools.prefill_groups_beside
    kind = request.prefill.cluster.gpu.name
    rate = groups * layout.gpus * pools.prefill_per_gpu
    lines = [
        f"# Planned for {request.shape.name} on {groups * layout.gpus} {kind}, which feed "
        f"{request.gpus} {request.decode.cluster.gpu.name} of decode:",
        f"# {pools.prefill_per_gpu:,.0f} tokens of prompts a second and GPU, at best.",
        "# The engine has no pools yet, so that node_role prefill is refused: this file does not",
        "# start. With node_role full it does, and answers too.",
        *_weights(request),
        *_keys(request, request.prefill, layout, groups, path, role="prefill"),
        f"max_batch_tokens: {max(STEP_TOKENS, request.input)}",
        "slo:",
        f"  requests_per_s: {rate / request.input:.4g}",
    ]
    return "\n".join(lines) + "\n"


def _keys(
    request: PlanRequest, pool: Pool, layout: Layout, groups: int, path: str | None, *, role: str
) -> Iterator[str]:
    if path is not None:
        yield f"path: {json.dumps(path)}"
    yield f"node_role: {role}"
    yield f"parallel_strategy: {layout.name}"
    yield f"instance_count: {groups}"
    yield f"domain: {pool.cluster.domain}"
    yield "wide_ep: refuse  # measured at start; or warn, or fallback"
    yield f"max_model_len: {max(request.input + request.output, request.context)}"
    yield f"gpu_memory_fraction: {request.fraction:g}"
    if is_dequantised(request.shape, request.precision):
        yield "quantisation: none"
    if request.kv_dtype == "fp8":
        yield "kv_dtype: fp8"


def _weights(request: PlanRequest) -> Iterator[str]:
    if note := weights_note(request.shape, request.precision):
        yield f"# Weights: {note}"


def _beside(plan: Plan) -> Iterator[str]:
    if (pools := plan.pools) is not None:
        layout, kind = pools.prefill_layout, plan.request.prefill.cluster.gpu.name
        yield (
            f"# It wants {pools.prefill_groups_beside} x {layout.name} of prefill beside it "
            f"({pools.prefill_groups_beside * layout.gpus} {kind})."
        )
