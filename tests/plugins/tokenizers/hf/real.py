"""The real tokenizers, and what is particular to each."""

from __future__ import annotations

from unicodedata import normalize

import pytest

from tests import real_tokenizers
from tokenwire.core.checkpoint import Checkpoint
from tokenwire.plugins.tokenizers.hf.load import load
from tokenwire.plugins.tokenizers.hf.settings import HfSettings

QUICK = ("smollm2", "qwen3")
LONG = ("llama3_1", "deepseek_v3", "gemma3", "gptoss", "llama2")
NAMES = [*QUICK, *(pytest.param(name, marks=pytest.mark.long) for name in LONG)]

MARKERS = {
    "qwen3": ("<think>", "</think>", "<tool_call>"),
    "deepseek_v3": ("<\uff5cUser\uff5c>", "<\uff5cAssistant\uff5c>"),
    "gemma3": ("<unused0>",),
}


def normal(name):
    """What the model's own normaliser does that encoding cannot undo."""
    match name:
        case "qwen3":
            return lambda text: normalize("NFC", text)
        case "gemma3" | "llama2":
            return lambda text: text.replace("▁", " ")
    return str


def lacks(name):
    """SmolLM2's vocabulary has no token for some control characters, and drops them."""
    missing = "\x04\x06\x13\x14\x16\x1d" if name == "smollm2" else ""
    return lambda letter: letter in missing


def folder(name):
    return real_tokenizers.smollm2() if name == "smollm2" else real_tokenizers.published(name)


def loaded(name, fast="off"):
    return load(HfSettings(fast=fast), Checkpoint(folder(name)))
