"""The laws of every family, with the published templates whose calls are JSON in tags."""

from __future__ import annotations

import pytest

from tests.plugins.dialects import laws
from tokenwire.plugins.dialects.hermes.maker import hermes_maker

COVERED = [
    laws.Covered("Qwen-Qwen3-0.6B"),
    laws.Covered("Qwen-Qwen2.5-7B-Instruct", thinks=False),
    laws.Covered("Qwen-QwQ-32B", thinks=False, head="<|im_start|>assistant\n"),
    laws.Covered("NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use", thinks=False, speaks=False),
    laws.Covered("NousResearch-Hermes-3-Llama-3.1-8B-tool_use", thinks=False, speaks=False),
    laws.Covered("MiMo-VL", thinks=False),
    laws.Covered("Bielik-11B-v3.0-Instruct", trims=None, thought_trims=None),
    laws.Covered(
        "Reka-Edge",
        head="assistant: ",
        args={"enable_thinking": True},
        thought_trims=None,
        rewrites=True,
    ),
    laws.Covered("ibm-granite-granite-4.0", thinks=False),
    laws.Covered("ibm-granite-granite-4.1", thinks=False),
]


@pytest.mark.parametrize("covered", COVERED, ids=laws.name_of)
@pytest.mark.parametrize("law", laws.LAWS, ids=laws.name_of)
def test_the_laws_hold(law: laws.Law, covered: laws.Covered) -> None:
    law(hermes_maker(), covered)
