"""`tokenwire ranks FILE --node K`: this machine's share of a group that lies over several.

It starts the ranks, and starts them again when the group ends, until it is told to end. It serves
nothing: machine 0 has the server. Exit codes: 0: it was told to end; 2: wrong usage or settings.
"""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from tokenwire.core.errors import ConfigError
from tokenwire.plugins.engines.cuda.parallel.front.launching import launch_process
from tokenwire.plugins.engines.cuda.parallel.order import FOLDER, RANK, Order, write_order
from tokenwire.plugins.engines.cuda.settings import CudaSettings

__all__ = ("keep_running", "main", "settings_in")

LOG = logging.getLogger("tokenwire.engine.cuda")
LONGEST_WAIT_S: Final = 60.0


def main(arguments: Sequence[str]) -> int:
    """Runs `tokenwire ranks ARGUMENTS` -> its exit code."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")
    try:
        settings = settings_in(Path(options.file), options.node, options.model)
    except ConfigError as error:
        print(f"tokenwire ranks: {error}", file=sys.stderr)
        return 2
    ended = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: ended.set())
    keep_running(settings, ended)
    return 0


def settings_in(path: Path, node: int, model: str | None = None) -> CudaSettings:
    """The engine's settings in a node file, or of one model in a server's configuration, as of
    machine `node`. Raises ConfigError."""
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    if not isinstance(found, Mapping):
        raise ConfigError(f"{path}: wanted a node file or a configuration, got no table")
    raw = _engine_of(found["models"], path, model) if "models" in found else dict(found)
    try:
        settings = msgspec.convert(raw | {"node": node}, CudaSettings)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{path}: {error}") from error
    if settings.path is None:
        raise ConfigError(f"{path}: the model has no checkpoint: set `path` to its folder")
    if not node or settings.nodes == 1:
        raise ConfigError(
            f"{path}: node is {node} and nodes {settings.nodes}: this command is for the machines "
            "from 1 on of a group over several; machine 0 runs `tokenwire serve`"
        )
    return settings


def keep_running(settings: CudaSettings, ended: threading.Event, *, program: str = RANK) -> None:
    """Until `ended` is set, and the ranks have ended."""
    wait_s = 1.0
    with tempfile.TemporaryDirectory(prefix=FOLDER) as folder:
        path = Path(folder) / "order"
        write_order(Order(settings=settings, program=program), path)
        while not ended.is_set():
            codes: list[int] = []
            over = threading.Event()

            def exited(code: int, codes: list[int] = codes, over: threading.Event = over) -> None:
                codes.append(code)
                over.set()

            launched = launch_process(path, exited)
            while not over.wait(0.2):
                if ended.is_set():
                    launched.end()
            if ended.is_set():
                return
            wait_s = 1.0 if codes == [0] else min(2 * wait_s, LONGEST_WAIT_S)
            LOG.warning("the ranks here have ended (code %d); again in %g s", codes[0], wait_s)
            ended.wait(wait_s)


def _engine_of(models: object, path: Path, name: str | None) -> dict[str, Any]:
    """The engine of the one model that says `nodes`, or that is called `name`."""
    found = [
        each
        for each in (models if isinstance(models, list) else ())
        if isinstance(each, Mapping)
        and isinstance(engine := each.get("engine"), Mapping)
        and engine.get("plugin") == "cuda"
        and (each.get("name") == name if name is not None else "nodes" in engine)
    ]
    if len(found) != 1:
        has = "nodes" if name is None else f"are called {name!r}"
        advice = "name one with --model"
        if not found and name is None:
            advice = "set nodes and rendezvous under the engine of the one that is meant"
        raise ConfigError(f"{path}: {len(found)} models have engine cuda and {has}: {advice}")
    engine = {key: value for key, value in found[0]["engine"].items() if key != "plugin"}
    if "path" not in engine and isinstance(found[0].get("checkpoint"), str):
        engine["path"] = found[0]["checkpoint"]
    return engine


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tokenwire ranks",
        description="This machine's ranks of a group that lies over several machines.",
    )
    parser.add_argument("file", help="a node file, or the server's configuration (YAML)")
    parser.add_argument("--node", type=int, required=True, help="which machine this is, from 1 on")
    parser.add_argument("--model", help="of a configuration: which model")
    return parser
