"""The mock engine under the engine kit, as it comes and in narrower settings."""

from __future__ import annotations

import pytest

from tokenwire.core.host import lone_services
from tokenwire.core.testing.engine_kit import LAWS, run_engine_kit
from tokenwire.plugins.engines.mock.build import build
from tokenwire.plugins.engines.mock.settings import MockSettings


@pytest.mark.parametrize("law", LAWS)
def test_it_conforms(law: str) -> None:
    run_engine_kit(lambda: build(MockSettings(), lone_services()), laws=(law,))


NARROW = {
    "few slots and blocks": MockSettings(max_running=3, kv_blocks=12, block_size=8),
    "no cache": MockSettings(kv_blocks=0),
    "a small cap": MockSettings(credit_cap=4, context_length=512),
    "with delays": MockSettings(ttft_ms=1.0, token_ms=0.2),
    "bare": MockSettings(
        without=(
            "n",
            "logprobs",
            "prompt_logprobs",
            "stop_ids",
            "stop_sequences",
            "logit_bias",
            "allowed_ids",
            "penalties",
            "min_p",
            "resume",
            "reasoning_budget",
            "credit",
        )
    ),
}


@pytest.mark.parametrize("name", NARROW)
def test_it_conforms_in_narrow_settings(name: str) -> None:
    run_engine_kit(lambda: build(NARROW[name], lone_services()), jobs=30)
