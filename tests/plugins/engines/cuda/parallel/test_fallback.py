"""A group that falls back: what its ranks say, and what the front starts in its place."""

from __future__ import annotations

import asyncio
import pickle
import threading
from pathlib import Path

import pytest

from tests.plugins.engines.cuda.parallel.stubs import Plan, Stubs
from tokenwire.core.errors import ConfigError
from tokenwire.core.host import lone_services
from tokenwire.plugins.engines.cuda.parallel.fallen import FellBack
from tokenwire.plugins.engines.cuda.parallel.frames import HEAD, Instead, encode, read_rank
from tokenwire.plugins.engines.cuda.parallel.front.building import build_groups
from tokenwire.plugins.engines.cuda.parallel.front.launching import Launched
from tokenwire.plugins.engines.cuda.parallel.line import Line
from tokenwire.plugins.engines.cuda.parallel.order import read_order
from tokenwire.plugins.engines.cuda.settings import CudaSettings
from tokenwire.plugins.engines.mock.settings import MockSettings

SLOW = Instead("TP_2 x DEP_2", 2, "DEP_8 is held back by its network")


def test_the_frame_and_the_exception_cross_processes() -> None:
    assert read_rank(encode(SLOW)[HEAD:]) == SLOW
    again = pickle.loads(pickle.dumps(FellBack(SLOW)))
    assert (again.instead, str(again)) == (SLOW, SLOW.reason)


class Falling(Launched):
    """A launch of ranks of which the first says `SLOW`, and all end."""

    def __init__(self, path: Path, exited) -> None:
        self._order, self._exited = read_order(path), exited
        threading.Thread(target=self._run, daemon=True).start()

    def end(self) -> None:
        pass

    def _run(self) -> None:
        gone = threading.Event()
        line = Line.enter(self._order, 0, gone=gone.set)
        line.send(SLOW)
        gone.wait(10)
        line.close()
        self._exited(0)


def test_the_front_starts_what_is_better(tmp_path, caplog) -> None:
    plan = Plan(MockSettings(), parts=2, followers=1)
    orders = []

    def launch(path, exited) -> Launched:
        order = read_order(path)
        orders.append(order)
        if order.settings.parallel_strategy == "DEP_8":
            return Falling(path, exited)
        return plan.launch(path, exited)

    chosen = CudaSettings(
        path=str(tmp_path),
        grammar="none",
        parallel_strategy="DEP_8",
        wide_ep="fallback",
    )
    engine = build_groups(chosen, lone_services(), launch=launch)
    try:
        about = engine.status().about
        assert engine.status().ready
        assert about["layout"] == "TP_2 x DEP_2"
        assert about["instances"] == about["instances_ready"] == 2
        assert about["fell_back"] == SLOW.reason
        assert len([each for each in plan.started if isinstance(each, Stubs)]) == 2
        assert {each.settings.wide_ep for each in orders[1:]} == {"warn"}, "judged once"
        assert "TP_2 x DEP_2 starts instead: DEP_8 is held back" in caplog.text
        assert not [each for each in caplog.records if each.levelname == "ERROR"]
    finally:
        asyncio.run(engine.drain(0))


def test_a_refusal_is_what_the_rank_said(tmp_path) -> None:
    plan = Plan(MockSettings(), parts=2)
    plan.fails = "DEP_2 reaches beyond its domains"
    chosen = CudaSettings(path=str(tmp_path), grammar="none", parallel_strategy="DEP_2")
    with pytest.raises(ConfigError, match=r"rank \d of 2: DEP_2 reaches beyond its domains"):
        build_groups(chosen, lone_services(), launch=plan.launch)
