"""The engine under the engine kit, on a tiny Llama with random weights, in every way it can run."""

from __future__ import annotations

import pytest

from tests.plugins.engines.reference.tiny import tiny_llama
from tokenwire.core.host import lone_services
from tokenwire.core.testing.engine_kit import LAWS, run_engine_kit

pytestmark = pytest.mark.torch

WAYS = {
    "plain": {},
    "overlap": {"overlap": True},
    "padded": {"graphs": True, "overlap": True},
    "drafts": {"speculation": {"tokens": 3, "longest": 3, "shortest": 1}},
    "small steps": {"max_batch_tokens": 9, "max_batch_size": 3, "block_size": 2},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("law", LAWS)
def test_it_conforms(law: str, way: str) -> None:
    folder = str(tiny_llama())
    from tokenwire.core.settings import Place, convert
    from tokenwire.plugins.engines.cuda.build import build
    from tokenwire.plugins.engines.cuda.settings import CudaSettings

    fields = {"path": folder, "credit_cap": 16, "max_batch_size": 6, "kv_gib": 0.01}
    settings = convert(CudaSettings, fields | WAYS[way], Place("test", "engine"))
    run_engine_kit(lambda: build(settings, lone_services()), laws=(law,), jobs=27)
