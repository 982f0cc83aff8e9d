"""The least time of prompts through a layout. Pure; no search, and no first token's wait.

Dense and expert layers as in `decode`, the head for the last token of each prompt; attention by its
operations, unabsorbed. Rows go to experts once a domain. A bound, as there.
"""

from __future__ import annotations

from typing import Literal

from tokenwire.core.cost.exchange import all_reduce_seconds, exchange_seconds
from tokenwire.core.cost.gpus import Cluster
from tokenwire.core.cost.kernels import grouped_gemm, prefill_attention_flops, weights_once
from tokenwire.core.cost.layout import ONE, Layout
from tokenwire.core.cost.shape import ModelShape, Precision
from tokenwire.core.cost.weights import BYTES, parameters

__all__ = ("prefill_rate", "prefill_seconds")


def prefill_seconds(
    shape: ModelShape,
    cluster: Cluster,
    layout: Layout = ONE,
    *,
    prompt: int,
    past: int = 0,
    prompts: int = 1,
    precision: Precision = "bf16",
) -> float:
    """`prompts` of `prompt` new tokens each, after `past` cached ones, on each part at once."""
    gpu, tokens = cluster.gpu, prompt * prompts
    compute: Literal["bf16", "fp8"] = "fp8" if precision == "fp8" else "bf16"
    held, size = parameters(shape, layout), BYTES[precision]
    rates = gpu.bandwidth.value, gpu.peak(compute)
    linear = held.attention + held.dense + held.shared
    seconds = weights_once(linear, tokens, size.linear).seconds(*rates)
    head = weights_once(held.head, prompts, size.head)
    seconds += head.seconds(gpu.bandwidth.value, gpu.bf16.value)
    seconds += prompts * _attention_flops(shape, layout, prompt, past) / gpu.bf16.value
    if (moe := shape.moe) is not None:
        each = grouped_gemm(
            moe.experts,
            moe.top_k,
            shape.hidden,
            moe.width / layout.tensor,
            tokens * layout.data,
            ranks=layout.data,
            weight=size.expert,
            activation=size.activation,
        )
        seconds += shape.moe_layers * each.seconds(*rates)
    rows = exchange_seconds(shape, cluster, layout, tokens, fp8=precision == "fp8", dispatch="node")
    return max(seconds, shape.moe_layers * rows) + all_reduce_seconds(
        shape, cluster, layout, tokens
    )


def prefill_rate(
    shape: ModelShape,
    cluster: Cluster,
    layout: Layout = ONE,
    *,
    prompt: int,
    past: int = 0,
    prompts: int = 1,
    precision: Precision = "bf16",
) -> float:
    """Prompt tokens/s of one GPU."""
    seconds = prefill_seconds(
        shape, cluster, layout, prompt=prompt, past=past, prompts=prompts, precision=precision
    )
    return prompt * prompts / layout.tensor / seconds


def _attention_flops(shape: ModelShape, layout: Layout, new: int, past: int) -> float:
    """All layers, one prompt. A windowed layer sees at most its window."""
    full = prefill_attention_flops(shape.attention, new, past=past, tensor=layout.tensor)
    if not shape.window_layers:
        return shape.layers * full
    # As if every token saw the whole window, where that is less than what is there.
    near = prefill_attention_flops(shape.attention, 1, past=shape.window - 1, tensor=layout.tensor)
    windowed = min(full, new * near)
    return (shape.layers - shape.window_layers) * full + shape.window_layers * windowed
