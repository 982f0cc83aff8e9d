"""The reference engine under the engine kit, on a tiny Llama with random weights."""

from __future__ import annotations

import pytest

from tests.plugins.engines.reference.tiny import tiny_llama
from tokenwire.core.host import lone_services
from tokenwire.core.testing.engine_kit import LAWS, run_engine_kit

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("law", LAWS)
def test_it_conforms(law: str) -> None:
    folder = str(tiny_llama())
    from tokenwire.plugins.engines.reference.build import build
    from tokenwire.plugins.engines.reference.settings import ReferenceSettings

    settings = ReferenceSettings(path=folder, credit_cap=16, max_running=6)
    run_engine_kit(lambda: build(settings, lone_services()), laws=(law,), jobs=27)
