"""Starts a group's ranks on this machine and watches over them: torchrun's own engine, no restarts.

    python -m tokenwire.plugins.engines.cuda.parallel.launcher ORDER

When one rank fails it ends the others, and writes what failed first into the order's failure file.
It ends when its standard input does, which whoever started it holds open. Exit codes: 0: all ranks
ended well; 1: one did not, or none could be started. Knows no model.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tokenwire.core.errors import ConfigError
from tokenwire.plugins.engines.cuda.parallel.devices import crowd, is_on_gpus, visible_devices
from tokenwire.plugins.engines.cuda.parallel.order import FOLDER, Order, read_order

__all__ = ("failure_of", "main")

LOOPBACK: Final = "127.0.0.1"
WATCH_S: Final = 0.1
TERM_S: Final = 5
"""How long ranks get to end, before they are killed."""
MEET_S: Final = 3600
"""How long machines wait for each other."""


def main(arguments: Sequence[str]) -> int:
    """Runs one group's share, until it ends."""
    path, parent = Path(arguments[0]), os.getppid()
    threading.Thread(target=_end_with_parent, name="tokenwire-parent", daemon=True).start()
    order = read_order(path)
    try:
        failure = _run(order, path)
    except ConfigError as error:
        failure = {"message": str(error)}
    if os.getppid() != parent and path.parent.name.startswith(FOLDER):
        # Why: whoever made the folder was killed, and nobody else takes it away.
        shutil.rmtree(path.parent, ignore_errors=True)
        return 1
    if failure is None:
        return 0
    if order.failure:
        written = Path(order.failure)
        written.with_suffix(".part").write_text(json.dumps(failure))
        written.with_suffix(".part").rename(written)
    return 1


def failure_of(failures: Mapping[int, Any]) -> dict[str, object]:
    """What failed first, of torchrun's failures by rank, as it is written: rank, code, signal."""
    # Why these first: the others were ended because of it.
    rank, found = min(
        failures.items(), key=lambda each: (each[1].exitcode == -signal.SIGTERM, each[1].timestamp)
    )
    name = found.signal_name() if found.exitcode < 0 else ""
    return {"rank": rank, "code": found.exitcode, "signal": name}


def _run(order: Order, path: Path) -> dict[str, object] | None:
    """None: all ended well, or somebody wants it to end. Raises ConfigError."""
    import torch
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    settings = order.settings
    here = settings.layout.gpus // settings.nodes
    found = torch.cuda.device_count()
    if is_on_gpus(settings.device, found):
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        os.environ["CUDA_VISIBLE_DEVICES"] = visible_devices(order.instance, here, found, visible)
    elif said := crowd(here * settings.instance_count, os.cpu_count() or 1):
        print(f"engine cuda: {said}", file=sys.stderr)
    threads = settings.threads or max((os.cpu_count() or 1) // (here * settings.instance_count), 1)
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))
    config = LaunchConfig(
        min_nodes=settings.nodes,
        max_nodes=settings.nodes,
        nproc_per_node=here,
        max_restarts=0,
        monitor_interval=WATCH_S,
        logs_specs=DefaultLogsSpecs(log_dir=str(path.parent)),
        shutdown_timeout=TERM_S,
        **_rendezvous(order),
    )
    try:
        elastic_launch(config, sys.executable)("-m", order.program, str(path))
    except ChildFailedError as error:
        return failure_of(error.failures)
    except SignalException:
        return None
    return None


def _rendezvous(order: Order) -> dict[str, Any]:
    """How the launchers find each other: alone on the loopback, or at machine 0."""
    settings = order.settings
    if settings.rendezvous is None:
        return {
            "run_id": uuid.uuid4().hex,
            "rdzv_backend": "c10d",
            "rdzv_endpoint": f"{LOOPBACK}:0",
            "rdzv_configs": {"is_host": True},
            "local_addr": LOOPBACK,
        }
    return {
        "run_id": "tokenwire",
        "rdzv_backend": "static",
        "rdzv_endpoint": settings.rendezvous,
        "rdzv_configs": {"rank": settings.node, "timeout": MEET_S},
    }


def _end_with_parent() -> None:
    """In a thread."""
    while os.read(sys.stdin.fileno(), 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    code = main(sys.argv[1:])
    # Why so: the front waits for this end, and torch takes its time to unload.
    os._exit(code)
