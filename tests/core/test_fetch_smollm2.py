"""What `fetch smollm2` makes, against what transformers makes of the same GGUF."""

from __future__ import annotations

from random import Random

import pytest
from jinja2.sandbox import ImmutableSandboxedEnvironment

from tokenwire.core.checkpoint import Checkpoint
from tokenwire.plugins.tokenizers.hf.load import load
from tokenwire.plugins.tokenizers.hf.settings import HfSettings

WORDS = (
    "Hello", " world", "\n", "\n\n", "  ", "\t", "é", "日本", "🌊", "'s", "'ll", "don't", " Paris",
    ",", "...", "<|im_start|>", "<|im_end|>", "<repo_name>", "<b>", "def f(x):", "_a", "A", " 7",
    "42", "1st", " 2026-11-30", "½", "x²",
)  # fmt: skip


def texts(words, count):
    random = Random(2)
    return ["".join(random.choices(words, k=15)) for _ in range(count)]


@pytest.mark.torch
def test_ids_are_those_of_transformers_own_conversion(smollm2):
    transformers = pytest.importorskip("transformers")
    theirs = transformers.AutoTokenizer.from_pretrained(str(smollm2), gguf_file="model.gguf")
    ours = load(HfSettings(fast="off"), Checkpoint(smollm2))
    assert theirs.get_vocab() == ours._library.get_vocab()
    without_digits = [word for word in WORDS if not any(map(str.isnumeric, word))]
    for text in texts(without_digits, 1500):
        assert list(ours.encode(text)) == theirs(text, add_special_tokens=False)["input_ids"]
    # Why apart: transformers' conversion leaves out that SmolLM2 cuts digits from what is before
    # them; with the model's own pre-tokenizer it gives our ids.
    theirs.backend_tokenizer.pre_tokenizer = ours._library.pre_tokenizer
    for text in texts(WORDS, 1500):
        assert list(ours.encode(text)) == theirs(text, add_special_tokens=False)["input_ids"]


def test_digits_stand_alone_and_leave_the_space_before_them(smollm2):
    ours = load(HfSettings(fast="off"), Checkpoint(smollm2))
    spelled = [ours.token_bytes(id) for id in ours.encode("a  2026 x")]
    assert spelled == [b"a", b"  ", b"2", b"0", b"2", b"6", b" x"]


def test_the_chat_template_renders(smollm2):
    source = Checkpoint(smollm2).chat_template()
    assert source is not None
    rendered = (
        ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        .from_string(source)
        .render(messages=[{"role": "user", "content": "Hi"}], add_generation_prompt=True)
    )
    assert rendered.endswith("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")
    ours = load(HfSettings(fast="off"), Checkpoint(smollm2))
    assert list(ours.encode(rendered)).count(1) == 3
    assert list(ours.encode(rendered)).count(ours.vocabulary.eos_ids[0]) == 2


def test_the_configuration_has_the_model_s_sizes(smollm2):
    config = Checkpoint(smollm2).config()
    sizes = ("vocab_size", "hidden_size", "num_hidden_layers", "max_position_embeddings")
    assert [config[key] for key in sizes] == [49152, 576, 30, 8192]
    assert (config["num_attention_heads"], config["num_key_value_heads"]) == (9, 3)
