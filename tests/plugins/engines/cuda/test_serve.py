"""A model folder and a GGUF file are served by naming them: a real process, answers over HTTP."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
gguf = pytest.importorskip("gguf")

from tests.plugins.engines.cuda.load.checkpoints import tiny  # noqa: E402
from tests.plugins.engines.cuda.load.test_gguf import write  # noqa: E402
from tests.plugins.engines.cuda.served import serve, served  # noqa: E402
from tokenwire.core.gguf_files import write_files  # noqa: E402
from tokenwire.plugins.tokenizers.hf.spelling import byte_alphabet  # noqa: E402

pytestmark = pytest.mark.torch

TEMPLATE = "{% for m in messages %}[{{ m.role }}] {{ m.content }}{{ eos_token }}{% endfor %}"
MESSAGES = [{"role": "user", "content": "Hi there, 12 é!"}]
TYPES = gguf.TokenType


def byte_level(writer) -> None:
    """Four specials, then bytes and one merge. 3 ends."""
    specials = ["<|a|>", "<|b|>", "<|endoftext|>", "<|im_end|>"]
    tokens = [*specials, *byte_alphabet().values(), "Hi"]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types([TYPES.CONTROL] * 4 + [TYPES.NORMAL] * 257)
    writer.add_token_merges(["H i"])
    writer.add_chat_template(TEMPLATE)


def pieces(writer) -> None:
    """As Llama 2's begins, but for 3, which ends."""
    tokens = ["<unk>", "<s>", "</s>", "<end>", *(f"<0x{byte:02X}>" for byte in range(256))]
    tokens += ["▁", "H", "i", "▁H", "▁Hi"]
    types = [TYPES.UNKNOWN, *[TYPES.CONTROL] * 3, *[TYPES.BYTE] * 256, *[TYPES.NORMAL] * 5]
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_scores([0.0] * 260 + [-3.0, -4.0, -5.0, -1.0, -2.0])
    writer.add_bos_token_id(1)
    writer.add_chat_template(TEMPLATE)


KINDS = {"qwen3": ("Qwen3", byte_level, 261), "llama": ("Llama", pieces, 265)}


def model(folder: Path, architecture: str) -> Path:
    """A Hugging Face folder called `hf` and the same model in `tiny`.gguf, in `folder`."""
    kind, vocabulary, size = KINDS[architecture]
    network = tiny(folder / "hf", kind, vocab_size=size, max_position_embeddings=128)
    path = write(folder / "tiny.gguf", network, architecture, vocabulary=vocabulary)
    made = folder / "made"
    made.mkdir()
    write_files(path, made)
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        (made / name).rename(folder / "hf" / name)
    generation = {"eos_token_id": 3}
    (folder / "hf" / "generation_config.json").write_text(json.dumps(generation))
    return path


@pytest.mark.parametrize("architecture", ["qwen3", "llama"])
def test_a_folder_and_a_file_of_it_give_the_same_answers(architecture, tmp_path) -> None:
    path = model(tmp_path, architecture)
    with served(path, tmp_path / "hf", folder=tmp_path) as server:
        assert server.ready()[0] == 200
        found = []
        for name in ("tiny", "hf"):
            asked = {"model": name, "messages": MESSAGES, "max_tokens": 12, "temperature": 0}
            answer = server.ask("/v1/chat/completions", asked)
            choice = answer["choices"][0]
            assert choice["finish_reason"] in {"length", "stop"}
            found.append((choice["message"], choice["finish_reason"], answer["usage"]))
        assert found[0] == found[1]
        assert found[0][2]["completion_tokens"] > 0
        raw = {"model": "tiny", "prompt": "Hi", "max_tokens": 1, "temperature": 0}
        assert (
            server.ask("/v1/completions", raw)["usage"]["prompt_tokens"]
            == {
                "qwen3": 1,
                "llama": 2,
            }[architecture]
        ), "llama's begin with bos"


def test_a_folder_without_weights_is_not_ready_and_says_why(tmp_path) -> None:
    model(tmp_path, "qwen3")
    (tmp_path / "hf" / "model.safetensors").unlink()
    with served(tmp_path / "hf", folder=tmp_path) as server:
        status, text = server.ready()
    assert status == 503
    assert "safetensors" in text


def test_what_cannot_be_served_ends_with_2_and_a_sentence(tmp_path) -> None:
    network = tiny(tmp_path / "hf", "Qwen3", vocab_size=261)
    path = write(tmp_path / "bird.gguf", network, "falcon", vocabulary=byte_level)
    process = serve(path, folder=tmp_path)
    assert process.wait(120) == 2
    text = (tmp_path / "log").read_text()
    assert "Traceback" not in text
    assert "wanted one of llama, qwen2, qwen3, gemma3, got 'falcon'" in text
