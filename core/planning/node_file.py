"""The node file that a plan's pick amounts to, as YAML. Writes to no disk."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tokenwire.core.planning.plan import Plan
from tokenwire.core.planning.points import Point

__all__ = ("node_file",)


def node_file(plan: Plan, picked: Point, path: str | None) -> str:
    """Keys as an engine node has them. `path`: the checkpoint, where the plan was made from one."""
    request, layout = plan.request, picked.layout
    lines = [
        f"# Planned for {request.shape.name} on {request.gpus} {request.decode.cluster.gpu.name}: "
        f"{picked.per_gpu:,.0f} tokens/s a GPU, {picked.per_user:.1f} a user, at best.",
        *_beside(plan),
        "# The engine runs one GPU as yet, and node_role full alone: this file does not start.",
        *([] if path is None else [f"path: {json.dumps(path)}"]),
        "node_role: decode",
        f"parallel_strategy: {layout.name}",
        f"instance_count: {request.gpus // layout.gpus}",
        f"max_batch_size: {picked.batch}  # sequences of each part with a batch of its own",
        f"max_model_len: {max(request.input + request.output, request.context)}",
        f"gpu_memory_fraction: {request.fraction:g}",
        *(["kv_dtype: fp8"] if request.kv_dtype == "fp8" else []),
        "slo:",
        f"  user_tokens_per_s: {1 / request.tpot:g}",
    ]
    return "\n".join(lines) + "\n"


def _beside(plan: Plan) -> Iterator[str]:
    if (pools := plan.pools) is not None:
        layout, kind = pools.prefill_layout, plan.request.prefill.cluster.gpu.name
        yield (
            f"# It wants {pools.prefill_groups_beside} x {layout.name} of prefill beside it "
            f"({pools.prefill_groups_beside * layout.gpus} {kind})."
        )
