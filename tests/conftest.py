"""Fixtures for all tests."""

from __future__ import annotations

import pytest

import tokenwire.plugins.engines.mock.build  # noqa: F401
from tests import examples, real_tokenizers

examples.load()


@pytest.fixture(scope="session")
def smollm2():
    """The folder of SmolLM2-135M-Instruct: tokenizer, chat template, configuration, model.gguf."""
    return real_tokenizers.smollm2()


@pytest.fixture(scope="session")
def minilm():
    """The folder of all-MiniLM-L6-v2, a BERT encoder: weights, tokenizer, how to pool."""
    return real_tokenizers.minilm()
