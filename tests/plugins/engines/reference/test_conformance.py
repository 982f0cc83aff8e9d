"""The reference engine under the engine kit, on a tiny Llama with random weights."""

from __future__ import annotations

from pathlib import Path

import pytest

from tokenwire.core.host import lone_services
from tokenwire.core.testing.engine_kit import LAWS, run_engine_kit

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=160,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        # Why so large: small weights make every answer one id repeated.
        initializer_range=0.5,
        eos_token_id=1,
        tie_word_embeddings=False,
    )
    folder = tmp_path_factory.mktemp("tiny")
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    return folder


@pytest.mark.parametrize("law", LAWS)
def test_it_conforms(law: str, tiny: Path) -> None:
    from tokenwire.plugins.engines.reference.build import build
    from tokenwire.plugins.engines.reference.settings import ReferenceSettings

    settings = ReferenceSettings(path=str(tiny), credit_cap=16, max_running=6)
    run_engine_kit(lambda: build(settings, lone_services()), laws=(law,), jobs=27)
