"""How ranks on other machines learn what rank 0 knows: where the front is, its secret, the model.

Over the store that torchrun's engine keeps for the group. Knows no front and no model.
"""

from __future__ import annotations

import os
from datetime import timedelta
from importlib import import_module
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from tokenwire.plugins.engines.cuda.parallel.order import Order

__all__ = ("whole_order",)

KEY: Final = "tokenwire/order"
WAIT: Final = timedelta(minutes=10)


def whole_order(own: Order, rank: int) -> Order:
    """The order of rank 0, with what is another on each machine: where its files are, and which
    machine it is. Every rank calls it. Raises RuntimeError where rank 0 does not come."""
    if own.settings.nodes == 1:
        return own
    # Why by name: torch's own types do not show its stores, nor that they take bytes.
    dist: Any = import_module("torch.distributed")
    store = dist.TCPStore(
        os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False, timeout=WAIT
    )
    if rank == 0:
        store.set(KEY, msgspec.msgpack.encode(own))
    if own.front:
        return own
    told = msgspec.msgpack.decode(store.get(KEY), type=Order)
    mine = own.settings
    settings = replace(
        told.settings,
        path=mine.path,
        node=mine.node,
        kernel_lib=mine.kernel_lib,
        adapters=mine.adapters,
    )
    return replace(told, settings=settings, failure=own.failure)
