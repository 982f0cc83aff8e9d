"""Builds the engine: looks at the machine, loads the model, puts the loop together."""

from __future__ import annotations

import logging
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from tokenwire.core.errors import ConfigError
from tokenwire.core.factory import Services
from tokenwire.core.ports.engine import Engine
from tokenwire.core.threaded_engine import ThreadedEngine
from tokenwire.plugins.engines.cuda import preflight
from tokenwire.plugins.engines.cuda.built import Built
from tokenwire.plugins.engines.cuda.settings import CudaSettings
from tokenwire.plugins.engines.cuda.sharing import want_shared

if TYPE_CHECKING:
    import torch

    from tokenwire.kernels.ops import Ops
    from tokenwire.plugins.engines.cuda.layers.site import Lying
    from tokenwire.plugins.engines.cuda.load import Loaded
    from tokenwire.plugins.engines.cuda.models.config import ModelConfig
    from tokenwire.plugins.engines.cuda.parallel.mesh import Mesh
    from tokenwire.plugins.engines.cuda.passes import Between
    from tokenwire.plugins.engines.cuda.progress import Progress
    from tokenwire.plugins.engines.cuda.sizes import Shape
    from tokenwire.plugins.engines.cuda.worker import MoreFigures

__all__ = (
    "assemble",
    "build",
    "build_here",
    "choose_ops",
    "load_here",
    "revision_of",
    "weights_of",
)

LOG = logging.getLogger("tokenwire.engine.cuda")


def build(settings: CudaSettings, services: Services) -> Engine:
    """Raises ConfigError: something is missing on this machine, or in the checkpoint, or the
    settings cannot go together. Takes as long as the weights take to load."""
    if not settings.is_alone:
        from tokenwire.plugins.engines.cuda.parallel.front import build_groups

        return build_groups(settings, services)
    built = build_here(settings, services)
    return ThreadedEngine(built.worker, built.card, built.slots + settings.max_waiting, "cuda")


def build_here(
    settings: CudaSettings,
    services: Services,
    *,
    revision: str = "",
    told: Progress | None = None,
) -> Built:
    """A model on one device of this process. `revision`: of the weights; "": found out. `told`
    None: a bar shows it. Raises as `build` does."""
    path = weights_of(settings, services)
    revision = revision or revision_of(path)
    if settings.task == "embed":
        device, machine = _device(settings)
        from tokenwire.plugins.engines.cuda.embedding_build import build_embedding

        return build_embedding(
            settings, services, path, device=device, machine=machine, revision=revision, told=told
        )
    loaded, found = load_here(settings, services, told=told)
    return assemble(settings, services, loaded, found, revision=revision)


def load_here(
    settings: CudaSettings,
    services: Services,
    *,
    mesh: Mesh | None = None,
    told: Progress | None = None,
) -> tuple[Loaded, Shape]:
    """A generating model on one device: in a group, the share of `mesh`'s rank. `told`, and what is
    raised: as of `build_here`."""
    device, machine = _device(settings)
    import torch

    from tokenwire.plugins.engines.cuda.graphs import has_graphs
    from tokenwire.plugins.engines.cuda.load import keeps_fp8, load, load_config
    from tokenwire.plugins.engines.cuda.models.causal import CausalModel
    from tokenwire.plugins.engines.cuda.parallel.mesh import SOLE
    from tokenwire.plugins.engines.cuda.progress import bar
    from tokenwire.plugins.engines.cuda.shortage import reserving
    from tokenwire.plugins.engines.cuda.sizes import shape

    path = weights_of(settings, services)
    config = load_config(path)
    want_shared(config, settings, (mesh or SOLE).layout)
    found = shape(settings, config, services.context_length, is_cpu=device == "cpu")
    if device == "cpu" and settings.threads is not None:
        torch.set_num_threads(settings.threads)
    dtype = _dtype(settings, config, device)
    slices = 1 if mesh is None else mesh.layout.tensor
    ops = choose_ops(settings, config, device, dtype, machine, slices=slices)
    preflight.take_built(settings.kernel_lib, machine)
    keeps = keeps_fp8(settings.quantisation, config, device)
    captures = has_graphs(settings.graphs, torch.device(device), ops, config, keeps_fp8=keeps)
    lies: Lying = {
        "mesh": mesh or SOLE,
        "dispatcher": settings.dispatcher,
        "redundant": settings.redundant_experts,
        "captured": found.max_batch_size if captures else 0,
        "is_steady": settings.objective == "determinism",
    }

    def weights() -> int:
        return CausalModel(
            config, ops, device="meta", dtype=dtype, keeps_fp8=keeps, **lies
        ).weight_bytes

    remedy = "take a smaller checkpoint or dtype, or another device"
    with bar(path.name, told) as progress, reserving(device, path.name, weights, remedy):
        loaded = load(
            path,
            device=device,
            dtype=dtype,
            ops=ops,
            quantisation=settings.quantisation,
            progress=progress,
            positions=found.max_model_len,
            **lies,
        )
    return loaded, found


def _device(settings: CudaSettings) -> tuple[str, preflight.Machine]:
    machine = preflight.look(settings.device)
    device = preflight.pick_device(settings.device, machine)
    preflight.check(device, machine)
    return device, machine


def assemble(
    settings: CudaSettings,
    services: Services,
    loaded: Loaded,
    found: Shape,
    *,
    revision: str = "",
    mesh: Mesh | None = None,
    between: Between | None = None,
    figures: MoreFigures | None = None,
) -> Built:
    """The loop of a model that is loaded already. `mesh`: in a group, of a part's leader; None:
    there is one rank. `between`: as of Passes. `figures`: as of CudaWorker."""
    from tokenwire.plugins.engines.cuda import about, sizes
    from tokenwire.plugins.engines.cuda.card import make_card
    from tokenwire.plugins.engines.cuda.grammar import grammars
    from tokenwire.plugins.engines.cuda.laid import lay_out
    from tokenwire.plugins.engines.cuda.parallel.leading import followers_of, lockstep_of
    from tokenwire.plugins.engines.cuda.parallel.mesh import SOLE
    from tokenwire.plugins.engines.cuda.policy.kv import BlockTables
    from tokenwire.plugins.engines.cuda.policy.scheduler import Scheduler
    from tokenwire.plugins.engines.cuda.rows import Rows
    from tokenwire.plugins.engines.cuda.runner import Runner
    from tokenwire.plugins.engines.cuda.trace import Trace
    from tokenwire.plugins.engines.cuda.worker import CudaWorker

    laid, size = lay_out(settings, loaded, found, mesh or SOLE, between), settings.block_size
    found, specs = laid.found, laid.specs
    card = make_card(settings, services, loaded, found, revision=revision)
    held = grammars(settings.grammar, services.tokenizer, card.vocab_size, card.eos_ids)
    if held is not None:
        kinds = tuple(f"grammar:{kind}" for kind in held.kinds)
        card = replace(card, capabilities=(*card.capabilities, *kinds))
    runner = Runner(
        laid.passes,
        Rows(laid.rows, laid.width, [spec.window for spec in specs], size),
        vocab_size=card.vocab_size,
        executor=laid.stream,
        forbid_waits=settings.forbid_waits,
        followers=None if mesh is None else followers_of(mesh),
    )
    root = bytes.fromhex(card.hash_root)
    scheduler = Scheduler(sizes.limits(found, settings), BlockTables(specs, size, root))
    facts = about.about(
        services.model,
        loaded,
        found,
        kv_dtype=laid.kv_dtype,
        blocks=specs[0].blocks - 1,
        block_size=size,
        sizes=laid.parts,
        switches={
            "grammar": "none" if held is None else held.name,
            "graphs": _on_off(bool(laid.graph_sizes)),
            "overlap": _on_off(laid.overlaps),
            "prefix_cache": _on_off(settings.prefix_cache),
        },
    )
    worker = CudaWorker(
        card,
        settings,
        scheduler,
        runner,
        grammars=held,
        adapters=tuple(settings.adapters),
        overlap=laid.overlaps,
        about=facts,
        trace=None if settings.trace is None else Trace(settings.trace),
        lockstep=None if mesh is None else lockstep_of(mesh, laid),
        figures=figures,
    )
    LOG.info("ready %s", about.line(facts))
    return Built(worker, card, found.max_batch_size)


def _on_off(is_on: bool) -> str:
    return "on" if is_on else "off"


def weights_of(settings: CudaSettings, services: Services) -> Path:
    """Where they are. Raises ConfigError where nobody says."""
    if settings.path is not None:
        return Path(settings.path)
    if services.checkpoint is None:
        raise ConfigError(
            f"engine cuda: model {services.model!r} has no checkpoint: set `path` to its folder"
        )
    return services.checkpoint.weights


def _dtype(settings: CudaSettings, config: ModelConfig, device: str) -> torch.dtype:
    import torch

    if settings.dtype != "auto":
        return getattr(torch, settings.dtype)
    if device == "cpu":
        return torch.float32
    return getattr(torch, config.dtype)


def choose_ops(
    settings: CudaSettings,
    config: ModelConfig,
    device: str,
    dtype: torch.dtype,
    machine: preflight.Machine,
    *,
    slices: int = 1,
) -> Ops:
    """For a rank's share of the heads, where they are cut into so many slices."""
    import torch

    from tokenwire.kernels.op import Signature
    from tokenwire.kernels.ops import Ops
    from tokenwire.plugins.engines.cuda.load import keeps_fp8
    from tokenwire.plugins.engines.cuda.steadiness import want_steady

    kv_heads, head_dim, _ = config.kv_shape(slices)
    signature = Signature(
        device="cuda" if device.startswith("cuda") else "cpu",
        capability=machine.capability,
        dtype=dtype,
        kv_dtype=torch.float8_e4m3fn if settings.kv_dtype == "fp8" else None,
        head_dim=head_dim,
        heads=max(config.heads // slices, 1),
        kv_heads=kv_heads,
        block_size=settings.block_size,
    )
    try:
        ops = Ops.choose(signature, settings.kernels, objective=settings.objective)
    except ValueError as error:
        raise ConfigError(f"engine cuda: {error}") from error
    if settings.objective == "determinism":
        keeps = keeps_fp8(settings.quantisation, config, device)
        want_steady(config, ops, settings.dispatcher, keeps_fp8=keeps)
    return ops


def revision_of(path: Path) -> str:
    """Of the weights, without reading them: a digest of names, sizes and times of their files."""
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    told = [
        f"{file.name}|{file.stat().st_size}|{file.stat().st_mtime_ns}"
        for file in files
        if file.suffix in (".safetensors", ".gguf", ".json") and file.is_file()
    ]
    return sha256("\n".join(told).encode()).hexdigest()[:16]
