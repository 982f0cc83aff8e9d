"""A part of the check: the collectives and dispatchers of a group, over NCCL with one rank.

A group of one talks to nobody when it serves; here it is given a group of torch's, so that every
call goes through the library, with the tensors, streams and graphs that more ranks would have. What
only links can break stays unproven. On a CPU it is gloo.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
import torch.distributed as dist
from apart import Asked, Found, tried
from driving import Driver, engine_of, jobs_of
from msgspec.structs import replace as put
from networks import TINY_MOE, random_model
from torch import Tensor

from tokenwire.core.cost.layout import Layout
from tokenwire.kernels.bench import timed
from tokenwire.plugins.engines.cuda.layers.dispatch import Dispatcher
from tokenwire.plugins.engines.cuda.layers.moe import Moe
from tokenwire.plugins.engines.cuda.parallel.exchanged import ExchangedDispatcher
from tokenwire.plugins.engines.cuda.parallel.gathered import GatheredDispatcher
from tokenwire.plugins.engines.cuda.parallel.group import Group
from tokenwire.plugins.engines.cuda.parallel.mesh import Mesh, join

__all__ = ("one_rank",)

NEAR = {torch.float32: 5e-7, torch.bfloat16: 1e-2}
"""Relative to the largest: an order of sums."""


def one_rank(asked: Asked) -> Iterator[Found]:
    mesh = _joined(asked.device)
    is_cuda = asked.device == "cuda"
    made = dist.new_group([0], backend="nccl" if is_cuda else "gloo")
    group = Group(1, 0, made)
    yield "facts", {"layout": mesh.layout.name, "backend": dist.get_backend(made)}
    for name, work in _collectives(group, asked.device).items():
        yield from tried(_same(name, *work))
    yield from tried(_times(group, asked))
    config = put(TINY_MOE, dtype="bfloat16" if is_cuda else "float32")
    yield from tried(_dispatchers(group, config.dtype, asked.device))
    yield from tried(_generated(mesh, group, asked.device))
    # Why no leaving: NCCL waits there for graphs that hold its calls; the process ends by itself.


def _joined(device: str) -> Mesh:
    """As torchrun would start one rank."""
    with socket.socket() as spare:
        spare.bind(("127.0.0.1", 0))
        port = spare.getsockname()[1]
    os.environ |= {
        "RANK": "0",
        "LOCAL_RANK": "0",
        "WORLD_SIZE": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    return join(Layout.named("DEP_1"), torch.device("cuda:0" if device == "cuda" else device))


def _collectives(group: Group, device: str) -> dict[str, tuple[Tensor, Tensor]]:
    """Name -> what is got and what is wanted: with one rank, what was given."""
    x = torch.randn(5, 8, device=device)
    eighth = x.to(torch.float8_e4m3fn)
    return {
        "all_reduce": (group.all_reduce(x.clone()), x),
        "sum_in_order": (group.sum_in_order(x), x),
        "all_gather": (group.all_gather(x), x[None]),
        "reduce_scatter": (group.reduce_scatter(x[None]), x),
        "all_to_all": (group.all_to_all(x, [5], [5]), x),
        "all_to_all of fp8": (group.all_to_all(eighth, [5], [5]).float(), eighth.float()),
        "all_to_all of no rows": (group.all_to_all(x[:0], [0], [0]), x[:0]),
        "broadcast": (group.broadcast(x.clone()), x),
    }


def _same(name: str, got: Tensor, wanted: Tensor, near: float = 0.0) -> Iterator[Found]:
    size = float(wanted.abs().max()) if wanted.numel() else 1.0
    apart = float((got - wanted).abs().max()) / size if wanted.numel() else 0.0
    holds = got.shape == wanted.shape and apart <= near
    yield ("holds" if holds else "broken"), f"{name}: {apart:.1e} apart, allowed {near:.0e}"


def _times(group: Group, asked: Asked) -> Iterator[Found]:
    """Of one rank: what a call costs without a link."""
    for rows in (8,) if asked.small else (64, 1024):
        x = torch.randn(rows, 4096, device=asked.device, dtype=torch.bfloat16)
        calls: dict[str, Callable[[], Any]] = {
            "all_reduce": lambda x=x: group.all_reduce(x),
            "all_gather": lambda x=x: group.all_gather(x),
            "all_to_all": lambda x=x: group.all_to_all(x),
        }
        for name, call in calls.items():
            seconds = timed(call, (), {}, asked.device)
            yield "rows", {"call": name, "shape": list(x.shape), "us": seconds * 1e6}


def _dispatchers(group: Group, dtype: str, device: str) -> Iterator[Found]:
    """A layer of experts by each dispatcher, beside the one that has all experts and no group."""
    moe = random_model(put(TINY_MOE, dtype=dtype), device).model.blocks[0].mlp
    assert isinstance(moe, Moe)
    ops, slots, local = moe.ops, moe.mixture.experts, moe.dispatcher
    kinds: dict[str, Dispatcher] = {
        "exchanged": ExchangedDispatcher(ops, group, slots),
        "gathered": GatheredDispatcher(ops, group, slots),
        "gathered, masked": GatheredDispatcher(ops, group, slots, "masked"),
    }
    for tokens in (1, 37):
        x = torch.randn(tokens, TINY_MOE.hidden, device=device, dtype=getattr(torch, dtype))
        moe.dispatcher = local
        wanted = _layer(moe, x)
        for name, dispatcher in kinds.items():
            moe.dispatcher = dispatcher
            yield from tried(
                _same(f"{name}, {tokens} tokens", _layer(moe, x), wanted, NEAR[x.dtype])
            )
    if device == "cuda":
        moe.dispatcher = kinds["gathered"]
        yield from tried(_same("gathered in a CUDA graph", *_replayed(moe, x), NEAR[x.dtype]))


def _layer(moe: Moe, x: Tensor) -> Tensor:
    with torch.inference_mode():
        return moe(x, None)


def _replayed(moe: Moe, x: Tensor) -> tuple[Tensor, Tensor]:
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        _layer(moe, x)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = _layer(moe, x)
    x.copy_(torch.randn_like(x))
    graph.replay()
    torch.cuda.synchronize()
    return found.clone(), _layer(moe, x)


def _generated(mesh: Mesh, group: Group, device: str) -> Iterator[Found]:
    """The engine's own loop with a mesh, its lockstep and its dispatchers; in float32, as sums of
    other orders may not change an id."""
    jobs = jobs_of(5, 20, 16, TINY_MOE.vocab_size)
    plain = Driver(engine_of(random_model(TINY_MOE, device), kv_gib=0.25))
    wanted = plain.ids(jobs)
    plain.close()
    real = replace(mesh, data=group)
    for name in ("exchanged", "gathered"):
        graphs = None if name == "gathered" else False
        lie = {"mesh": real, "dispatcher": name}
        loaded = random_model(TINY_MOE, device, lie=lie)
        driver = Driver(engine_of(loaded, mesh=real, kv_gib=0.25, graphs=graphs))
        found = driver.ids(jobs)
        driver.close()
        same = "the same ids as" if found == wanted else "other ids than"
        yield ("holds" if found == wanted else "broken"), f"{name}: {same} without a group"
