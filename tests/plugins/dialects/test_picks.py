"""`dialect: auto` knows the published templates of these families."""

from __future__ import annotations

import pytest

from tests.plugins.dialects.reading import template_source
from tokenwire.core.dialect_names import Signs, pick
from tokenwire.core.host import Host, lone_services
from tokenwire.core.ports.dialect import Dialect

PICKS = {
    "Apriel-1.6-15b-Thinker-fixed": "apriel",
    "GigaChat3-10B-A1.8B": "gigachat",
    "GigaChat3.1-10B-A1.8B": "gigachat",
    "HuggingFaceTB-SmolLM3-3B": "think",
    "LFM2-8B-A1B": "lfm2",
    "LFM2.5-8B-A1B": "lfm2",
    "LFM2.5-Instruct": "lfm2",
    "Mistral-Small-3.2-24B-Instruct-2506": "mistral",
    "NVIDIA-Nemotron-Nano-v2": "nemotron_nano_v2",
    "fireworks-ai-llama-3-firefunction-v2": "firefunction",
    "ibm-granite-granite-3.3-2B-Instruct": "granite",
    "ibm-granite-granite-4.0": "hermes",
    "meta-llama-Llama-3.1-8B-Instruct": "llama3_json",
    "meta-llama-Llama-3.2-3B-Instruct": "llama3_json",
    "meta-llama-Llama-3.3-70B-Instruct": "llama3_json",
    "microsoft-Phi-3.5-mini-instruct": "plain",
    "mistralai-Ministral-3-14B-Reasoning-2512": "mistral",
    "mistralai-Mistral-Nemo-Instruct-2407": "mistral_json",
    "unsloth-Apriel-1.5": "apriel",
    "unsloth-mistral-Devstral-Small-2507": "mistral",
    "upstage-Solar-Open-100B": "solar",
}


@pytest.fixture(scope="module")
def dialects() -> list[Dialect]:
    host = Host()
    return [host.dialects.build(name, {}, lone_services()) for name in host.dialects]


@pytest.mark.parametrize(("template", "name"), PICKS.items())
def test_auto_knows_the_family(template: str, name: str, dialects) -> None:
    signs = Signs(template_source(template))
    assert pick("auto", signs, dialects=dialects)[0] == name
