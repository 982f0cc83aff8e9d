"""The main of one rank: reads its order, builds its share of the model, serves its front.

    python -m tokenwire.plugins.engines.cuda.parallel.rank ORDER

with torchrun's environment. What fails is told to the front in one sentence, and printed.
"""

from __future__ import annotations

import logging
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec.structs import replace

from tokenwire.core.errors import ConfigError
from tokenwire.plugins.engines.cuda.parallel.bridge import WorkerLost, serve
from tokenwire.plugins.engines.cuda.parallel.devices import device_of, is_on_gpus
from tokenwire.plugins.engines.cuda.parallel.line import Line
from tokenwire.plugins.engines.cuda.parallel.meeting import whole_order
from tokenwire.plugins.engines.cuda.parallel.order import Order, read_order

__all__ = ("main", "run")


def main(arguments: Sequence[str], serve_rank: Callable[[Order, Line, int], None]) -> int:
    """`serve_rank(order, line, rank)` stays until the front says that it is over -> exit code."""
    rank = int(os.environ["RANK"])
    logging.basicConfig(level=logging.INFO, format=f"[rank {rank}] %(name)s: %(message)s")
    order = whole_order(read_order(Path(arguments[0])), rank)
    line = Line.enter(order, rank)
    try:
        serve_rank(order, line, rank)
    except (ConfigError, WorkerLost) as error:
        line.fail(str(error))
        return 1
    except BaseException as error:
        traceback.print_exc()
        line.fail(f"{type(error).__name__}: {error}")
        return 1
    line.close()
    return 0


def run(order: Order, line: Line, rank: int) -> None:
    """One device's model, as a server without groups has it."""
    import torch

    from tokenwire.plugins.engines.cuda.build import build_here

    settings = order.settings
    is_gpu = is_on_gpus(settings.device, torch.cuda.device_count())
    local = int(os.environ["LOCAL_RANK"])
    settings = replace(
        settings,
        device=device_of("cuda" if is_gpu else "cpu", local),
        trace=None if settings.trace is None else f"{settings.trace}.{order.instance}.{rank}",
    )
    built = build_here(
        settings, order.services(), revision=order.revision, told=line.progress
    )
    serve(line, built.worker, built.card, built.slots)


if __name__ == "__main__":
    code = main(sys.argv[1:], run)
    sys.stdout.flush()
    sys.stderr.flush()
    # Why so: the loop's thread may be in the middle of the device's work, which ends here.
    os._exit(code)
