"""A rank without a network, as a program: a mock engine behind a line. The order's `model` says how
it fails, and which rank does: "raise 1", "exit 0".
"""

from __future__ import annotations

import os
import sys

from tests.plugins.engines.cuda.parallel.stubs import mock_worker
from tokenwire.core.errors import ConfigError
from tokenwire.plugins.engines.cuda.parallel.bridge import serve
from tokenwire.plugins.engines.cuda.parallel.frames import Hello
from tokenwire.plugins.engines.cuda.parallel.line import Line
from tokenwire.plugins.engines.cuda.parallel.order import Order
from tokenwire.plugins.engines.cuda.parallel.rank import main
from tokenwire.plugins.engines.mock.settings import MockSettings


def run(order: Order, line: Line, rank: int) -> None:
    kind, _, which = order.model.partition(" ")
    if which == str(rank):
        if kind == "raise":
            raise ConfigError("layers.3.weight is missing")
        os._exit(7)
    slices = order.settings.layout.tensor
    if rank % slices:
        line.send(Hello())
        for _ in line.frames():
            pass
        return
    worker, card, slots = mock_worker(MockSettings(token_ms=5))
    serve(line, worker, card, slots, part=rank // slices)


if __name__ == "__main__":
    code = main(sys.argv[1:], run)
    os._exit(code)
