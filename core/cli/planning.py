"""`plan`: layouts of a model over GPUs, and which to take. Reads a config.json; runs nothing
unless it is to measure."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Literal

import msgspec
from cyclopts import App

from tokenwire.core.checkpoint import Checkpoint
from tokenwire.core.cli.probing import links_of
from tokenwire.core.cli.shell import Shell
from tokenwire.core.cost.checkpoint_shape import shape_of_config
from tokenwire.core.cost.exchange import Dispatch, row_bytes
from tokenwire.core.cost.gpus import Cluster, gpu_named
from tokenwire.core.cost.known_shapes import SHAPES, shape_named
from tokenwire.core.cost.links import Links, Probe
from tokenwire.core.cost.shape import KvDtype, ModelShape, Precision
from tokenwire.core.errors import ConfigError
from tokenwire.core.planning.holding import held_as
from tokenwire.core.planning.node_file import node_file, prefill_file
from tokenwire.core.planning.plan import Plan, make_plan
from tokenwire.core.planning.points import Point
from tokenwire.core.planning.report import report
from tokenwire.core.planning.request import PlanRequest, Pool, seconds_of
from tokenwire.core.planning.summary import summary_of
from tokenwire.core.settings import nearest

__all__ = ("add", "shape_from")


def add(app: App, shell: Shell) -> None:
    """Adds `plan`."""

    @app.command
    def plan(
        *,
        model: str,
        gpus: int,
        tpot: str = "50ms",
        gpu: str = "h200",
        domain: int | None = None,
        nic: float | None = None,
        price: float | None = None,
        prefill_gpu: str | None = None,
        prefill_price: float | None = None,
        input: int = 4096,
        output: int = 1024,
        context: int | None = None,
        objective: Literal["throughput", "user"] = "throughput",
        weights_dtype: Precision | None = None,
        kv_dtype: KvDtype = "bf16",
        dispatch: Dispatch = "pair",
        memory_fraction: float = 0.88,
        efficiency: float = 1.0,
        measure: bool = False,
        ranks: int | None = None,
        write: Path | None = None,
        write_prefill: Path | None = None,
        json: bool = False,
    ) -> int:
        """Plan how a model lies over GPUs: what fits, how fast it could be, what it would cost.

        It says bounds of a cost model.

        Parameters
        ----------
        model
            A Hugging Face folder, its config.json, or a known model's name, as deepseek-v3.
        gpus
            How many GPUs decode.
        tpot
            The longest that a user may wait for a token: 50ms, 0.05s.
        gpu
            Their kind.
        domain
            How many of them share NVLink. Default: as the kind is usually built in.
        nic
            GB/s in one direction of a GPU's network card. Default: likewise.
        price
            Of one GPU for an hour.
        prefill_gpu
            Their kind in a pool for prefill. Default: the same.
        prefill_price
            Of one of those for an hour. Default: the same, where the kind is.
        input
            Tokens of a prompt.
        output
            Tokens of an answer.
        context
            Tokens of KV of a running sequence. Default: the prompt and half of the answer.
        objective
            throughput: the most tokens/s. user: the fastest for each that gives half of that.
        weights_dtype
            Of the weights. Default: as the engine holds them, which dequantises mxfp4.
        kv_dtype
            Of KV.
        dispatch
            Rows are sent to each expert (pair), to each GPU of them (rank), or domain (node).
        memory_fraction
            Of a GPU's memory, for weights and KV.
        efficiency
            What an engine reaches of the bounds, above 0 up to 1.
        measure
            Time this machine's links between ranks, and plan with those.
        ranks
            How many ranks time them. Default: one for each GPU of this machine, 2 on CPUs.
        write
            A new file for the pick, as an engine node's configuration.
        write_prefill
            A new file for the pool of prefill beside it.
        json
            As JSON.
        """
        shape, path = shape_from(model)
        precision = weights_dtype or held_as(shape)
        kind = gpu_named(gpu)
        other = gpu_named(prefill_gpu or gpu)
        speed = None if nic is None else nic * 1e9
        if prefill_price is None and other == kind:
            prefill_price = price
        if ranks is not None and not measure:
            raise ConfigError("--ranks: says how many ranks --measure starts, which is not there")
        share = kind.domain if domain is None else domain
        for flag, place in (("--write", write), ("--write-prefill", write_prefill)):
            if place is not None and place.exists():
                raise ConfigError(_taken(flag, place))
        links = _measured(shape, precision, share, ranks) if measure else None
        found = make_plan(
            PlanRequest(
                shape,
                Pool(Cluster.of(kind, domain=domain, nic=speed, links=links), price),
                Pool(
                    Cluster.of(other, domain=domain, nic=speed, links=links)
                    if other == kind
                    else Cluster.of(other, nic=speed),
                    prefill_price,
                ),
                gpus=gpus,
                tpot=seconds_of(tpot),
                input=input,
                output=output,
                context=context if context is not None else input + output // 2,
                objective=objective,
                precision=precision,
                kv_dtype=kv_dtype,
                dispatch=dispatch,
                fraction=memory_fraction,
                efficiency=efficiency,
            )
        )
        _say(found, shell, json=json)
        if found.pick is None:
            return 1
        _write_all(found, found.pick, path, decode=write, prefill=write_prefill)
        return 0


def _measured(shape: ModelShape, precision: Precision, domain: int, ranks: int | None) -> Links:
    there, _ = row_bytes(shape.hidden, fp8=precision == "fp8")
    return links_of(Probe(ranks, domain, math.ceil(there)))


def shape_from(model: str) -> tuple[ModelShape, str | None]:
    """A known name, or a path -> the shape, and the checkpoint's path. Raises ConfigError."""
    known = shape_named(model)
    if known is not None:
        return known, None
    path = Path(model)
    folder = path.parent if path.name == "config.json" else path
    if path.suffix == ".gguf":
        raise ConfigError(
            f"--model {model}: a GGUF file cannot be planned with: name a config.json"
        )
    if not (folder / "config.json").is_file():
        raise ConfigError(
            f"--model {model}: no config.json is there, and no known model has that name"
            f"{nearest(model.lower(), (each.name for each in SHAPES))}"
        )
    shape = shape_of_config(Checkpoint(folder).config(), folder.resolve().name)
    return shape, str(folder)


def _say(plan: Plan, shell: Shell, *, json: bool) -> None:
    found = summary_of(plan)
    if json:
        shell.say(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
        return
    for line in report(found):
        shell.say(line)


def _write_all(
    plan: Plan, picked: Point, path: str | None, *, decode: Path | None, prefill: Path | None
) -> None:
    """Each where it is asked for; nothing where one of them cannot be made."""
    files = [("--write", decode, node_file(plan, picked, path))]
    if prefill is not None:
        if plan.pools is None:
            raise ConfigError("--write-prefill: no layout of the GPUs for prefill holds the model")
        files.append(("--write-prefill", prefill, prefill_file(plan, plan.pools, path)))
    for flag, place, text in files:
        if place is not None:
            _write(flag, place, text)


def _taken(flag: str, path: Path) -> str:
    return f"{flag} {path}: is there already: name a new file"


def _write(flag: str, path: Path, text: str) -> None:
    """Never over a file that is there."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise ConfigError(_taken(flag, path)) from error
    except OSError as error:
        raise ConfigError(f"{flag} {path}: cannot be written: {error.strerror}") from error
