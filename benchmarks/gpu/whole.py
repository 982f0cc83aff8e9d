"""Whole models on the engine: the same ids by graphs and in any batch; a step beside its floor."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from statistics import median
from typing import Any

import torch
from msgspec.structs import replace

from tokenwire.core.host import lone_services
from tokenwire.core.ports.engine import Engine
from tokenwire.core.threaded_engine import ThreadedEngine
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import (
    JobSampling,
    JobStopping,
    LogprobSettings,
    TokenDelta,
    TokenJob,
)
from tokenwire.kernels.bench import roofline
from tokenwire.plugins.engines.cuda.build import assemble, choose_ops
from tokenwire.plugins.engines.cuda.load import Loaded, load
from tokenwire.plugins.engines.cuda.models.causal import CausalModel
from tokenwire.plugins.engines.cuda.models.config import Mixture, ModelConfig, Rope
from tokenwire.plugins.engines.cuda.preflight import look
from tokenwire.plugins.engines.cuda.settings import CudaSettings
from tokenwire.plugins.engines.cuda.sizes import kv_token_bytes, shape

GREEDY = JobSampling(temperature=0.0)
TINY = ModelConfig(
    family="qwen3",
    hidden=64,
    intermediate=96,
    layers=2,
    heads=4,
    kv_heads=2,
    head_dim=16,
    vocab_size=512,
    context_length=512,
    rms_eps=1e-6,
    ropes=(Rope(16, 1e6),),
    rope_of_layer=(0, 0),
    windows=(0, 0),
    attention_scale=16**-0.5,
    tie=True,
    qk_norm=True,
    dtype="float32",
)
EXPERTS = Mixture(8, 2, 48, (0, 1))
QWEN3_06B = replace(
    TINY,
    hidden=1024,
    intermediate=3072,
    layers=28,
    heads=16,
    kv_heads=8,
    head_dim=128,
    vocab_size=151_936,
    context_length=8192,
    ropes=(Rope(128, 1e6),),
    rope_of_layer=(0,) * 28,
    windows=(0,) * 28,
    attention_scale=128**-0.5,
    dtype="bfloat16",
)
SMOLLM2 = replace(
    QWEN3_06B,
    family="llama",
    hidden=576,
    intermediate=1536,
    layers=30,
    heads=9,
    kv_heads=3,
    head_dim=64,
    vocab_size=49_152,
    ropes=(Rope(64, 1e5),),
    rope_of_layer=(0,) * 30,
    windows=(0,) * 30,
    attention_scale=64**-0.5,
    qk_norm=False,
)


def graphs(device: str, small: bool) -> dict[str, Any]:
    """Decode by captured graphs, padded to their sizes, and without: the same ids, also where a
    launch that waits for the device fails."""
    jobs = _jobs(7, 33, 24, TINY.vocab_size)
    plain = _answers(_tiny(device, graphs=False, overlap=False), jobs)
    captured = _answers(_tiny(device, graphs=True, overlap=True), jobs)
    strict = _answers(_tiny(device, graphs=True, overlap=True, forbid_waits=True), jobs)
    ways = {"graphs": captured, "launches that may not wait": strict}
    return {"broken": [_differ(way, plain, ids) for way, ids in ways.items() if ids != plain]}


def invariance(device: str, small: bool) -> dict[str, Any]:
    """A request's ids and log probabilities alone, and among others of other lengths, whole and in
    chunks, with deterministic kernels; dense, and with experts."""
    mine = TokenJob(
        job="mine",
        model="m",
        prompt=TokenIds(range(3, 80)),
        sampling=JobSampling(temperature=0.8, seed=5),
        stopping=JobStopping(max_tokens=24 if small else 64, ignore_eos=True),
        logprobs=LogprobSettings(top=2),
    )
    others = _jobs(5 if small else 47, 50, 24 if small else 64, TINY.vocab_size)
    ways: dict[str, dict[str, Any]] = {"a batch": {}, "a batch in chunks": {"chunk": 16}}
    broken = []
    for name, config in {"dense": TINY, "experts": replace(TINY, mixture=EXPERTS)}.items():
        alone, bits = _told(device, config, [mine])
        for way, options in ways.items():
            among, others_bits = _told(device, config, [*others, mine], **options)
            if alone != among:
                broken.append(_differ(f"{name}, {way}", alone, among))
            elif bits != others_bits:
                broken.append(f"{name}, {way}: the same ids, and other log probabilities")
    return {"broken": broken}


def _told(
    device: str, config: ModelConfig, jobs: list[TokenJob], chunk: int = 0
) -> tuple[list[int], list[float]]:
    """Of the last job."""
    engine = _tiny(device, config, objective="determinism", long_prefill_tokens=chunk)
    deltas = [delta for delta in _deltas(engine, jobs) if delta.job == jobs[-1].job]
    numbers = [each.logprob for delta in deltas for each in delta.logprobs]
    return [id for delta in deltas for id in delta.ids], numbers


def speeds(device: str, small: bool, folder: Path | None) -> dict[str, Any]:
    """Tokens a second and a decode step beside its floor: the bytes that it must read."""
    bandwidth = roofline(device).bandwidth
    rows = []
    models = {"tiny": TINY} if small else {"Qwen3-0.6B": QWEN3_06B, "SmolLM2-135M": SMOLLM2}
    for name, config in models.items():
        loaded = _random(config, device)
        for batch in (1, 4) if small else (1, 64, 256):
            rows.append(_speed(f"{name} (random)", loaded, batch, bandwidth, small))
    if folder is not None:
        rows += _named(folder, device, bandwidth, small)
    return {"rows": rows, "broken": []}


def _named(folder: Path, device: str, bandwidth: float, small: bool) -> list[dict[str, Any]]:
    from tokenwire.plugins.engines.cuda.load import load_config

    config = load_config(folder)
    dtype = torch.float32 if device == "cpu" else torch.bfloat16
    ops = choose_ops(CudaSettings(), config, device, dtype, look(device))
    loaded = load(folder, device=device, dtype=dtype, ops=ops)
    return [_speed(folder.name, loaded, batch, bandwidth, small) for batch in (1, 64)]


def _speed(name: str, loaded: Loaded, batch: int, bandwidth: float, small: bool) -> dict[str, Any]:
    given, made = (16, 16) if small else (512, 128)
    engine = _engine(loaded, max_batch_size=batch, max_batch_tokens=max(2048, batch))
    jobs = _jobs(batch, given, made, loaded.config.vocab_size)
    begun = time.perf_counter()
    steps = asyncio.run(_timed(engine, jobs))
    seconds = time.perf_counter() - begun
    config, element = loaded.config, loaded.model.dtype.itemsize
    context = given + made // 2
    token = sum(kv_token_bytes(config, group, element) for group in config.groups)
    floor = (loaded.bytes + batch * context * token) / bandwidth
    step = median(steps)
    row = {
        "model": name,
        "batch": batch,
        "in": given,
        "out": made,
        "tokens_per_s": batch * made / seconds,
        "step_ms": step * 1e3,
        "floor_ms": floor * 1e3,
        "distance": step / floor,
    }
    print(
        f"{name} B={batch}: {row['tokens_per_s']:.0f} tok/s, step {step * 1e3:.3f} ms of "
        f"{floor * 1e3:.3f} ms, {row['distance']:.2f}x",
        flush=True,
    )
    return row


def _tiny(device: str, config: ModelConfig = TINY, **settings: Any) -> Engine:
    dtype = "float32" if device == "cpu" else "bfloat16"
    return _engine(_random(replace(config, dtype=dtype), device, **settings), **settings)


def _random(config: ModelConfig, device: str, **settings: Any) -> Loaded:
    """Weights of a normal distribution, the same ones every time."""
    dtype = getattr(torch, config.dtype)
    chosen = CudaSettings(**settings)
    model = CausalModel(
        config, choose_ops(chosen, config, device, dtype, look(device)), device=device, dtype=dtype
    )
    generator = torch.Generator(device).manual_seed(0)
    for name, place in model.places.items():
        if name.endswith("norm.weight"):
            place.fill_(1.0)
        else:
            place.normal_(std=0.3 if config.hidden == TINY.hidden else 0.02, generator=generator)
    return Loaded(model, config, model.weight_bytes, 0.0)


def _engine(loaded: Loaded, **settings: Any) -> Engine:
    is_cpu = loaded.model.device.type == "cpu"
    chosen = CudaSettings(grammar="none", **settings)
    found = shape(chosen, loaded.config, None, is_cpu=is_cpu)
    built = assemble(chosen, lone_services(), loaded, found)
    return ThreadedEngine(built.worker, built.card, built.slots, "cuda")


def _jobs(count: int, given: int, made: int, vocabulary: int) -> list[TokenJob]:
    return [
        TokenJob(
            job=f"j{index}",
            model="m",
            prompt=TokenIds(
                (index * 7919 + at * 104_729) % (vocabulary - 3) + 3 for at in range(given)
            ),
            sampling=GREEDY,
            stopping=JobStopping(max_tokens=made, ignore_eos=True),
        )
        for index in range(count)
    ]


def _answers(engine: Engine, jobs: list[TokenJob]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {job.job: [] for job in jobs}
    for delta in _deltas(engine, jobs):
        found[delta.job] += delta.ids
    return found


def _deltas(engine: Engine, jobs: list[TokenJob]) -> list[TokenDelta]:
    found: list[TokenDelta] = []

    async def go() -> None:
        left = len(jobs)
        engine.submit(jobs)
        async for batch in engine.batches():
            found.extend(batch)
            left -= sum(delta.finish is not None for delta in batch)
            if not left:
                break
        await engine.drain(0)

    asyncio.run(go())
    return found


async def _timed(engine: Engine, jobs: list[TokenJob]) -> list[float]:
    """Seconds between steps that brought an id for every job."""
    left, last, steps = len(jobs), 0.0, []
    engine.submit(jobs)
    async for batch in engine.batches():
        now = time.perf_counter()
        if last and len(batch) == len(jobs):
            steps.append(now - last)
        last = now
        left -= sum(delta.finish is not None for delta in batch)
        if not left:
            break
    await engine.drain(0)
    return steps or [float("nan")]


def _differ(what: str, one: Any, other: Any) -> str:
    return f"with {what} the ids are others: {str(one)[:200]} and {str(other)[:200]}"
