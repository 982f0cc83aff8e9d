"""The engine's own loop in two groups, under the engine kit: behind sockets, in threads."""

from __future__ import annotations

import time

import pytest

pytest.importorskip("torch")

from tests.plugins.engines.cuda.parallel.stubs import Plan, groups
from tests.plugins.engines.reference.tiny import tiny_llama
from tokenwire.core.testing.engine_kit import LAWS, run_engine_kit
from tokenwire.core.threaded_engine import Worker
from tokenwire.core.tokens import EngineCard
from tokenwire.plugins.engines.cuda.parallel.order import Order
from tokenwire.plugins.engines.mock.settings import MockSettings

pytestmark = pytest.mark.torch

TINY = {"credit_cap": 16, "max_batch_size": 6, "kv_gib": 0.01, "device": "cpu", "threads": 1}


SLOW_S = 0.03
"""Of a step, where steps are counted until a word crosses two threads and a socket."""


class OwnPlan(Plan):
    pause_s = 0.0

    def make(self, order: Order) -> tuple[Worker, EngineCard, int]:
        from tokenwire.plugins.engines.cuda.build import build_here

        built = build_here(order.settings, order.services(), revision=order.revision)
        built.worker._runner.passes._between = lambda: time.sleep(self.pause_s)
        return built.worker, built.card, built.slots


@pytest.mark.parametrize("law", LAWS)
def test_it_conforms(law: str) -> None:
    plan = OwnPlan(MockSettings())
    plan.pause_s = SLOW_S if law == "an_abort_ends" else 0.0
    fields = TINY | {"path": str(tiny_llama()), "instance_count": 2}
    run_engine_kit(lambda: groups(plan, **fields), laws=(law,), jobs=27)
