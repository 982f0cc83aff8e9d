"""The engine's own loop in two groups, under the engine kit: behind sockets, in threads."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from msgspec.structs import replace

from tests.plugins.engines.cuda.parallel.stubs import Plan, groups
from tests.plugins.engines.reference.tiny import tiny_llama
from tokenwire.core.testing.engine_kit import LAWS, run_engine_kit
from tokenwire.core.threaded_engine import Worker
from tokenwire.core.tokens import EngineCard
from tokenwire.plugins.engines.cuda.parallel.order import Order
from tokenwire.plugins.engines.mock.settings import MockSettings

pytestmark = pytest.mark.torch

TINY = {"credit_cap": 16, "max_batch_size": 6, "kv_gib": 0.01, "device": "cpu", "threads": 1}


class OwnPlan(Plan):
    def make(self, order: Order) -> tuple[Worker, EngineCard, int]:
        from tokenwire.plugins.engines.cuda.build import build_here

        built = build_here(replace(order.settings), order.services(), revision=order.revision)
        return built.worker, built.card, built.slots


@pytest.mark.parametrize("law", LAWS)
def test_it_conforms(law: str) -> None:
    plan = OwnPlan(MockSettings())
    fields = TINY | {"path": str(tiny_llama()), "instance_count": 2}
    run_engine_kit(lambda: groups(plan, **fields), laws=(law,), jobs=27)
