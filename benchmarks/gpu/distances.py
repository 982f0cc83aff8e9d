"""Parts of the check that measure experts and latent attention over the roofline of core/cost.

The least time of each is what its formula gives for the bandwidth and the peak that this GPU
reached in the same process. Distance: measured over that. The formulas count what a kernel must
move and compute: launches count nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeAlias

import torch
from apart import Asked, Found, tried
from msgspec.structs import replace as put
from networks import QWEN3_30B, TINY_MOE, random_model

from tokenwire.core.cost.kernels import SCALE, Work, decode_attention, dense_gemm, grouped_gemm
from tokenwire.core.cost.shape import Mla
from tokenwire.kernels.attention.batch import AttentionBatch
from tokenwire.kernels.bench import Measurement, Roofline, compared, roofline, timed
from tokenwire.kernels.cases import Arguments, Bench
from tokenwire.kernels.fp8_quant.reference import fp8_quant
from tokenwire.kernels.op import Op, Signature
from tokenwire.kernels.ops import all_ops
from tokenwire.kernels.support import FP8
from tokenwire.plugins.engines.cuda.models.config import ModelConfig

__all__ = ("BF16", "grouped", "latent", "rows_of")

Make: TypeAlias = Callable[[torch.device], Arguments]
BF16 = Signature(dtype=torch.bfloat16)
WEIGHT_SCALE = 4 / 128**2
"""Bytes a weight of fp8's scales: one float32 for a block."""
LATENT, ROTATED, PAGE = 512, 64, 64


def grouped(asked: Asked) -> Iterator[Found]:
    """Products of experts: bf16 and fp8, contiguous and masked, one row an expert to many; the gate
    that quantises; and a whole layer of experts, from its router to its sum."""
    experts, outputs, inputs = (4, 128, 128) if asked.small else (128, 1536, 2048)
    limits = roofline(asked.device)
    yield "roofline", {"bandwidth": limits.bandwidth, "peak": limits.peak}
    for rows in (2,) if asked.small else (1, 4, 16, 64, 256):
        for make in (_contiguous, _masked, _fp8_contiguous, _fp8_masked):
            yield from tried(rows_of(*make(experts, outputs, inputs, rows), limits, asked.device))
    for rows in (8,) if asked.small else (512, 8192):
        yield from tried(rows_of(*_gate(rows, inputs), limits, asked.device))
    yield from tried(_layers(asked, limits))


def latent(asked: Asked) -> Iterator[Found]:
    """MLA decode over entries of 512 + 64 numbers."""
    limits = roofline(asked.device)
    yield "roofline", {"bandwidth": limits.bandwidth, "peak": limits.peak}
    heads, contexts, batches = (16, 128), (1024, 4989, 16384), (1, 16, 128)
    if asked.small:
        heads, contexts, batches = (2,), (70,), (1, 2)
    for count in heads:
        for context in contexts:
            for batch in batches:
                yield from tried(rows_of(*_decode(count, context, batch), limits, asked.device))


def rows_of(op: str, bench: Bench, limits: Roofline, device: str) -> Iterator[Found]:
    for one in compared(_op(op), bench, limits, device=device, kernels_only=True):
        print(one.line(), flush=True)
        yield "rows", json.loads(one.as_json())


def _op(name: str) -> Op:
    return next(op for op in all_ops() if op.name == name)


# --- products of experts --------------------------------------------------------------------------


def _work(experts: int, outputs: int, inputs: int, rows: int, *, fp8: bool) -> Work:
    weight, activation = (1 + WEIGHT_SCALE, 1 + SCALE) if fp8 else (2, 2)
    each = dense_gemm(rows, outputs, inputs, weight=weight, activation=activation)
    return each.times(experts)


def _weights(device: torch.device, *sizes: int) -> tuple[torch.Tensor, torch.Tensor]:
    experts, outputs, inputs = sizes
    w = torch.randn(*sizes, device=device, dtype=torch.bfloat16).to(FP8)
    return w, torch.rand(experts, outputs // 128, inputs // 128, device=device)


def _offsets(experts: int, rows: int, device: torch.device) -> torch.Tensor:
    return torch.arange(experts + 1, device=device, dtype=torch.int32) * rows


def _contiguous(experts: int, outputs: int, inputs: int, rows: int) -> tuple[str, Bench]:
    def make(device: torch.device) -> Arguments:
        x = torch.randn(experts * rows, inputs, device=device, dtype=torch.bfloat16)
        w = torch.randn(experts, outputs, inputs, device=device, dtype=torch.bfloat16)
        return x, w, _offsets(experts, rows, device)

    work = _work(experts, outputs, inputs, rows, fp8=False)
    return "grouped_matmul", _bench(f"bf16 {rows} rows each of {experts}", make, work)


def _masked(experts: int, outputs: int, inputs: int, rows: int) -> tuple[str, Bench]:
    def make(device: torch.device) -> Arguments:
        kind = {"device": device, "dtype": torch.bfloat16}
        return (
            torch.randn(experts, 2 * rows, inputs, **kind),
            torch.randn(experts, outputs, inputs, **kind),
            torch.full((experts,), rows, device=device, dtype=torch.int32),
            torch.empty(experts, 2 * rows, outputs, **kind),
        )

    work = _work(experts, outputs, inputs, rows, fp8=False)
    name = f"bf16 {rows} of {2 * rows} rows each of {experts}"
    return "grouped_matmul_masked", _bench(name, make, work)


def _fp8_contiguous(experts: int, outputs: int, inputs: int, rows: int) -> tuple[str, Bench]:
    def make(device: torch.device) -> Arguments:
        q, scales = fp8_quant(torch.randn(experts * rows, inputs, device=device))
        w, w_scales = _weights(device, experts, outputs, inputs)
        return q, w, w_scales, _offsets(experts, rows, device), scales

    work = _work(experts, outputs, inputs, rows, fp8=True)
    name = f"fp8 {rows} rows each of {experts}"
    return "fp8_grouped_matmul", _bench(name, make, work, fp8=True)


def _fp8_masked(experts: int, outputs: int, inputs: int, rows: int) -> tuple[str, Bench]:
    def make(device: torch.device) -> Arguments:
        shape = experts, 2 * rows, -1
        q, scales = fp8_quant(torch.randn(experts * 2 * rows, inputs, device=device))
        counts = torch.full((experts,), rows, device=device, dtype=torch.int32)
        y = torch.empty(experts, 2 * rows, outputs, device=device, dtype=torch.bfloat16)
        w, w_scales = _weights(device, experts, outputs, inputs)
        return q.view(*shape), w, w_scales, counts, y, scales.view(*shape)

    work = _work(experts, outputs, inputs, rows, fp8=True)
    name = f"fp8 {rows} of {2 * rows} rows each of {experts}"
    return "fp8_grouped_matmul_masked", _bench(name, make, work, fp8=True)


def _gate(rows: int, width: int) -> tuple[str, Bench]:
    def make(device: torch.device) -> Arguments:
        return (torch.randn(rows, 2 * width, device=device, dtype=torch.bfloat16),)

    work = Work(rows * width * (2 * 2 + 1 + SCALE), 0)
    return "silu_mul_quant", _bench(f"bf16 {rows}x{width}", make, work)


def _bench(name: str, make: Make, work: Work, *, fp8: bool = False) -> Bench:
    return Bench(name, BF16, make, int(work.bytes), flops=int(work.flops), fp8=fp8)


def _layers(asked: Asked, limits: Roofline) -> Iterator[Found]:
    """Replayed from a CUDA graph, as decode steps are."""
    config = _of_one_layer(TINY_MOE if asked.small else QWEN3_30B)
    mixture = config.mixture
    assert mixture is not None
    moe = random_model(config, asked.device).model.blocks[0].mlp
    for tokens in (4,) if asked.small else (1, 64, 512, 4096):
        work = grouped_gemm(
            mixture.experts, mixture.top_k, config.hidden, mixture.intermediate, tokens
        )
        x = torch.randn(tokens, config.hidden, device=asked.device, dtype=moe.router.weight.dtype)

        def layer(given: torch.Tensor = x) -> None:
            with torch.inference_mode():
                moe(given, None)

        seconds = timed(_captured(layer, asked.device), (), {}, asked.device)
        least = work.seconds(limits.bandwidth, limits.peak or float("inf"))
        one = Measurement("layer of experts", "chosen", f"bf16 {tokens} tokens", seconds, least)
        print(one.line(), flush=True)
        yield "rows", json.loads(one.as_json())


def _of_one_layer(config: ModelConfig) -> ModelConfig:
    """Of one layer, and few words."""
    assert config.mixture is not None
    mixture = put(config.mixture, layers=(0,))
    few = {"layers": 1, "rope_of_layer": (0,), "windows": (0,), "vocab_size": 512}
    return put(config, mixture=mixture, **few)


def _captured(work: Callable[[], None], device: str) -> Callable[[], Any]:
    if device != "cuda":
        return work
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay


# --- latent attention -----------------------------------------------------------------------------


def _decode(heads: int, context: int, batch: int) -> tuple[str, Bench]:
    width, pages = LATENT + ROTATED, -(-context // PAGE)
    signature = replace(BF16, heads=heads, kv_heads=1, head_dim=width, block_size=PAGE)

    def make(device: torch.device) -> Arguments:
        kind = {"device": device, "dtype": torch.bfloat16}
        order = torch.randperm(batch * pages, device=device, dtype=torch.int32) + 1
        paged = AttentionBatch(
            cu_q=torch.arange(batch + 1, device=device, dtype=torch.int32),
            kv_lens=torch.full((batch,), context, device=device, dtype=torch.int32),
            block_table=order.view(batch, pages),
            block_size=PAGE,
            max_q=1,
            max_kv=context,
        )
        cache = torch.randn(batch * pages + 1, PAGE, 1, width, **kind)
        return torch.randn(batch, heads, width, **kind), cache, paged, 192**-0.5

    work = decode_attention(Mla(heads, LATENT, ROTATED, 128, 128), context).times(batch)
    return "mla_decode", Bench(
        f"bf16 {batch} of {context} keys, {heads} heads",
        signature,
        make,
        int(work.bytes),
        keywords={"value_dim": LATENT},
        flops=int(work.flops),
    )
