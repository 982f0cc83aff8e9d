"""The main of one rank: reads its order, builds its share of the model, serves its front.

    python -m tokenwire.plugins.engines.cuda.parallel.rank ORDER

with torchrun's environment. What fails is told to the front in one sentence, and printed.
"""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from tokenwire.core.errors import ConfigError
from tokenwire.plugins.engines.cuda.parallel.bridge import GRACE_S, WorkerLost, serve
from tokenwire.plugins.engines.cuda.parallel.devices import device_of, is_on_gpus
from tokenwire.plugins.engines.cuda.parallel.fallen import FellBack
from tokenwire.plugins.engines.cuda.parallel.frames import Hello
from tokenwire.plugins.engines.cuda.parallel.line import Line
from tokenwire.plugins.engines.cuda.parallel.meeting import whole_order
from tokenwire.plugins.engines.cuda.parallel.order import Order, read_order
from tokenwire.plugins.engines.cuda.settings import CudaSettings

__all__ = ("main", "run")

PR_SET_PDEATHSIG: Final = 1
"""Of Linux' prctl: the signal that comes when the parent ends."""


def main(arguments: Sequence[str], serve_rank: Callable[[Order, Line, int], None]) -> int:
    """`serve_rank(order, line, rank)` stays until the front says that it is over -> exit code."""
    rank = int(os.environ["RANK"])
    _end_with_launcher()
    logging.basicConfig(level=logging.INFO, format=f"[rank {rank}] %(name)s: %(message)s")
    order = whole_order(read_order(Path(arguments[0])), rank)
    line = Line.enter(order, rank)
    try:
        serve_rank(order, line, rank)
    except FellBack as fallen:
        # Why all: whichever is heard first, the others are then no loss.
        line.send(fallen.instead)
    except (ConfigError, WorkerLost) as error:
        line.fail(str(error))
        return 1
    except BaseException as error:
        traceback.print_exc()
        line.fail(f"{type(error).__name__}: {error}")
        return 1
    line.close()
    return 0


def _end_with_launcher() -> None:
    """Why so, though it ends with its connection too: the thread that sees that does not run in a
    process that is stopped, or that hangs in a library which holds Python's lock."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def run(order: Order, line: Line, rank: int) -> None:
    """One device's model as a server without groups has it, or one rank's share of it."""
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
    if settings.layout.gpus > 1:
        _run_share(order, settings, line)
        return
    built = build_here(settings, order.services(), revision=order.revision, told=line.progress)
    serve(line, built.worker, built.card, built.slots)


def _run_share(order: Order, settings: CudaSettings, line: Line) -> None:
    """Of a model that lies over several ranks."""
    import torch

    from tokenwire.plugins.engines.cuda.balance.balancing import balance_of
    from tokenwire.plugins.engines.cuda.build import assemble, load_here, weights_of
    from tokenwire.plugins.engines.cuda.laid import lay_out
    from tokenwire.plugins.engines.cuda.load import load_config
    from tokenwire.plugins.engines.cuda.parallel.leading import follower_of
    from tokenwire.plugins.engines.cuda.parallel.mesh import join, leave
    from tokenwire.plugins.engines.cuda.parallel.wide import decide
    from tokenwire.plugins.engines.cuda.worker import CudaWorker

    if settings.task == "embed":
        raise ConfigError("engine cuda: an embedder lies on one device: set instance_count instead")
    device, services = torch.device(settings.device), order.services()
    if device.type == "cuda":
        torch.cuda.set_device(device)
    mesh = join(settings.layout, device)
    decide(mesh, load_config(weights_of(settings, services)), settings, device)
    loaded, found = load_here(settings, services, mesh=mesh, told=line.progress)
    balance = balance_of(loaded.model, mesh, settings)
    between = None if balance is None else balance.boundary
    if mesh.is_leader:
        built = assemble(
            settings,
            services,
            loaded,
            found,
            revision=order.revision,
            mesh=mesh,
            between=between,
            figures=None if balance is None else balance.figures,
        )
        worker = built.worker
        assert isinstance(worker, CudaWorker)
        serve(line, worker, built.card, built.slots, part=mesh.part, on_wave=worker.wake)
        # Why: the others wait for its last word.
        worker.join(GRACE_S)
    else:
        follower = follower_of(mesh, lay_out(settings, loaded, found, mesh, between))
        line.send(Hello())
        follower.run()
    leave()


if __name__ == "__main__":
    code = main(sys.argv[1:], run)
    sys.stdout.flush()
    sys.stderr.flush()
    # Why so: the loop's thread may be in the middle of the device's work, which ends here.
    os._exit(code)
