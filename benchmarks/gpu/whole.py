"""Parts of the check that run whole models on the engine: the same ids by graphs and in any batch;
a decode step beside its floor."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import torch
from apart import Asked, Found, tried
from driving import Driver, engine_of, jobs_of
from msgspec.structs import replace
from networks import (
    DEEPSEEK_V2_LITE,
    QWEN3_06B,
    QWEN3_30B,
    SMOLLM2,
    TINY,
    TINY_MLA,
    TINY_MOE,
    random_model,
)

from tokenwire.core.cost.decode import decode_step
from tokenwire.core.cost.gpus import Cluster, Figure, Gpu
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import JobSampling, JobStopping, TokenJob
from tokenwire.kernels.bench import Roofline, roofline
from tokenwire.plugins.engines.cuda.build import choose_ops
from tokenwire.plugins.engines.cuda.load import Loaded, load, load_config
from tokenwire.plugins.engines.cuda.models.config import ModelConfig
from tokenwire.plugins.engines.cuda.models.cost_shape import shape_of
from tokenwire.plugins.engines.cuda.preflight import look
from tokenwire.plugins.engines.cuda.settings import CudaSettings
from tokenwire.plugins.engines.cuda.sizes import GIB, kv_token_bytes

__all__ = ("dense", "floor", "graphs", "invariance", "latents", "mixtures")

KINDS = {"dense": TINY, "experts": TINY_MOE, "latents": TINY_MLA}


def graphs(asked: Asked) -> Iterator[Found]:
    """Decode by captured graphs, padded to their sizes, and without: the same ids, also where a
    launch that waits for the device fails. With kernels that a row's company does not change."""
    for name, config in KINDS.items():
        yield from tried(_graphs(name, _in_dtype(config, asked), asked.device))


def _graphs(name: str, config: ModelConfig, device: str) -> Iterator[Found]:
    jobs = jobs_of(7, 33, 24, config.vocab_size)
    plain = _ids(config, device, jobs, graphs=False, overlap=False)
    ways: dict[str, dict[str, Any]] = {
        "graphs": {},
        "launches that may not wait": {"forbid_waits": True},
    }
    for way, more in ways.items():
        ids = _ids(config, device, jobs, graphs=True, overlap=True, **more)
        yield "holds" if ids == plain else "broken", _told(f"{name}: {way}", plain, ids)


def invariance(asked: Asked) -> Iterator[Found]:
    """A request's ids alone, and among others of other lengths, with `objective: determinism`."""
    made = 24 if asked.small else 64
    mine = TokenJob(
        job="mine",
        model="m",
        prompt=TokenIds(range(3, 80)),
        sampling=JobSampling(temperature=0.8, seed=5),
        stopping=JobStopping(max_tokens=made, ignore_eos=True),
    )
    for name, tiny in KINDS.items():
        config = _in_dtype(tiny, asked)
        others = jobs_of(5 if asked.small else 47, 50, made, config.vocab_size)
        yield from tried(_invariance(name, config, asked.device, mine, others))


def _invariance(
    name: str, config: ModelConfig, device: str, mine: TokenJob, others: list[TokenJob]
) -> Iterator[Found]:
    alone = _ids(config, device, [mine])["mine"]
    among = _ids(config, device, [*others, mine])["mine"]
    yield "holds" if alone == among else "broken", _told(f"{name}: a batch", alone, among)


def dense(asked: Asked) -> Iterator[Found]:
    """Qwen3-0.6B and SmolLM2-135M, and the model that is named: a step beside its floor."""
    limits = roofline(asked.device)
    models = {"Qwen3-0.6B": QWEN3_06B, "SmolLM2-135M": SMOLLM2}
    if asked.small:
        models = {"tiny": TINY}
    for name, config in models.items():
        yield from tried(_random(name, config, asked, limits, (1, 64, 256), 512))
    if asked.model is not None:
        loaded = _named(asked.model, asked.device)
        yield from _speeds(asked.model.name, loaded, limits, (1, 64), asked, 512)


def mixtures(asked: Asked) -> Iterator[Found]:
    """Of Qwen3-30B-A3B's sizes, in bfloat16, at a context of 2k."""
    config = TINY_MOE if asked.small else QWEN3_30B
    yield from _random("Qwen3-30B-A3B", config, asked, roofline(asked.device), (1, 64), 1984)


def latents(asked: Asked) -> Iterator[Found]:
    """Of DeepSeek-V2-Lite's sizes, in bfloat16, at a context of 2k."""
    config = TINY_MLA if asked.small else DEEPSEEK_V2_LITE
    yield from _random("DeepSeek-V2-Lite", config, asked, roofline(asked.device), (1, 64), 1984)


def floor(config: ModelConfig, bandwidth: float, peak: float, *, batch: int, context: int) -> float:
    """Seconds of a decode step: bytes that it must read and products that it must make. `peak` 0:
    binds nothing."""
    top = peak or float("inf")
    rate, products = (Figure(each, each, "measured") for each in (bandwidth, top))
    gpu = Gpu("this one", 0, rate, products, None, nvlink=1, domain=1, nic=1)
    cluster = Cluster(gpu, domain=1, nic=1)
    return decode_step(shape_of(config), cluster, batch=batch, context=context).seconds


def _random(
    name: str,
    config: ModelConfig,
    asked: Asked,
    limits: Roofline,
    batches: tuple[int, ...],
    given: int,
) -> Iterator[Found]:
    begun = time.perf_counter()
    loaded = random_model(config, asked.device)
    yield "loaded", {"model": name, "bytes": loaded.bytes, "s": time.perf_counter() - begun}
    yield from _speeds(f"{name} (random)", loaded, limits, batches, asked, given)


def _speeds(
    name: str,
    loaded: Loaded,
    limits: Roofline,
    batches: tuple[int, ...],
    asked: Asked,
    given: int,
) -> Iterator[Found]:
    """One engine, a row for each number of sequences."""
    given, made = (16, 16) if asked.small else (given, 128)
    batches = (1, 4) if asked.small else batches
    config, most = loaded.config, max(batches)
    element = loaded.model.dtype.itemsize
    token = sum(kv_token_bytes(config, group, element) for group in config.groups)
    begun = time.perf_counter()
    driver = Driver(
        engine_of(
            loaded,
            max_batch_size=most,
            max_batch_tokens=512 if asked.small else 8192,
            max_model_len=given + made,
            # Why so: prompts are never shared, and other engines on this GPU need room.
            kv_gib=(most + 1) * (given + made + 64) * token / GIB,
            prefix_cache=False,
        )
    )
    yield "ready", {"model": name, "s": time.perf_counter() - begun}
    for batch in batches:
        # Why not greedy: sequences that say the same would take the same experts.
        jobs = jobs_of(batch, given, made, config.vocab_size, temperature=1.0)
        begun = time.perf_counter()
        steps = driver.steps(jobs)
        seconds = time.perf_counter() - begun
        context = given + made // 2
        least = floor(config, limits.bandwidth, limits.peak, batch=batch, context=context)
        step = median(steps)
        row = {
            "model": name,
            "batch": batch,
            "in": given,
            "out": made,
            "tokens_per_s": batch * made / seconds,
            "decode_tokens_per_s": batch / step,
            "step_ms": step * 1e3,
            "floor_ms": least * 1e3,
            "distance": step / least,
        }
        print(
            f"{name} B={batch}: {row['decode_tokens_per_s']:.0f} tok/s, step {step * 1e3:.3f} ms "
            f"of {least * 1e3:.3f} ms, {row['distance']:.2f}x",
            flush=True,
        )
        yield "rows", row
    driver.close()


def _named(folder: Path, device: str) -> Loaded:
    config = load_config(folder)
    dtype = torch.float32 if device == "cpu" else torch.bfloat16
    ops = choose_ops(CudaSettings(), config, device, dtype, look(device))
    return load(folder, device=device, dtype=dtype, ops=ops)


def _in_dtype(config: ModelConfig, asked: Asked) -> ModelConfig:
    return replace(config, dtype="float32" if asked.device == "cpu" else "bfloat16")


def _ids(
    config: ModelConfig, device: str, jobs: list[TokenJob], **settings: Any
) -> dict[str, list[int]]:
    loaded = random_model(config, device, objective="determinism")
    driver = Driver(engine_of(loaded, kv_gib=0.25, objective="determinism", **settings))
    try:
        return driver.ids(jobs)
    finally:
        driver.close()


def _told(what: str, one: Any, other: Any) -> str:
    if one == other:
        return f"with {what} the ids are the same"
    return f"with {what} the ids are others: {str(one)[:200]} and {str(other)[:200]}"
