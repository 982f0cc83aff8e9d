"""Reading a tokenizer.json and what stands beside it."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace
from tokenizers import AddedToken, Tokenizer, decoders, models

from tokenwire.core.checkpoint import Checkpoint
from tokenwire.core.errors import ConfigError
from tokenwire.core.host import Host, lone_services
from tokenwire.plugins.tokenizers import hf as plugin
from tokenwire.plugins.tokenizers.hf.load import load
from tokenwire.plugins.tokenizers.hf.settings import HfSettings

HOST = Host({"hf": plugin}, entry_points=False)
OFF = HfSettings(fast="off")


@pytest.fixture
def folder(tmp_path):
    words = {letter: id for id, letter in enumerate("abcd<>/|_seportin")}
    words["</s>"] = len(words)
    library = Tokenizer(models.BPE(words, []))
    library.decoder = decoders.Fuse()
    library.add_tokens([AddedToken("<tool>", normalized=False)])
    library.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def write(folder, name, **values):
    (folder / name).write_text(json.dumps(values))


def test_names_come_as_text_or_as_objects(folder):
    write(
        folder,
        "tokenizer_config.json",
        bos_token=None,
        eos_token={"__type": "AddedToken", "content": "</s>", "lstrip": False},
        pad_token="</s>",
    )
    vocabulary = load(OFF, Checkpoint(folder)).vocabulary
    assert (vocabulary.bos, vocabulary.eos, vocabulary.pad) == (None, "</s>", "</s>")
    assert vocabulary.eos_ids == (17,)
    assert [(token.text, token.special) for token in vocabulary.added] == [
        ("</s>", True),
        ("<tool>", False),
    ]


def test_a_token_that_only_the_configuration_lists_is_added(folder):
    entry = {"content": "<pad>", "special": True, "normalized": False}
    write(folder, "tokenizer_config.json", added_tokens_decoder={"19": entry})
    tokenizer = load(OFF, Checkpoint(folder))
    assert tokenizer.vocabulary.size == 20
    assert list(tokenizer.encode("a<pad>")) == [0, 19]
    assert tokenizer.token_bytes(19) == b"<pad>"
    assert 19 not in tokenizer.encode("a\U000f0000", {"\U000f0000": "<pad>"})


def test_a_token_that_the_configuration_names_as_special_is(folder):
    write(folder, "tokenizer_config.json", additional_special_tokens=["<tool>"])
    (token,) = load(OFF, Checkpoint(folder)).vocabulary.added
    assert (token.text, token.special) == ("<tool>", True)


@pytest.mark.parametrize(
    ("generation", "config", "ends"),
    [
        ({"eos_token_id": [3, 1]}, {"eos_token_id": 2}, (3, 1)),
        ({}, {"eos_token_id": 2}, (2,)),
        ({"eos_token_id": None}, {}, ()),
        ({"eos_token_id": [True, "x", 99999, -1]}, {}, ()),
    ],
)
def test_end_ids_are_generation_config_s_else_config_s(folder, generation, config, ends):
    write(folder, "generation_config.json", **generation)
    write(folder, "config.json", **config)
    assert load(OFF, Checkpoint(folder)).vocabulary.eos_ids == ends


def test_the_factory_takes_the_checkpoint_or_a_path(folder):
    services = replace(lone_services(), checkpoint=Checkpoint(folder))
    for settings in ({}, {"path": str(folder)}, {"path": str(folder / "tokenizer.json")}):
        made = HOST.build("tokenizer", "hf", settings, services)
        assert list(made.encode("abc")) == [0, 1, 2]
    alone = HOST.build("tokenizer", "hf", {"path": str(folder)}, lone_services())
    assert alone.vocabulary == made.vocabulary


def test_ids_that_are_none_are_key_errors(folder):
    tokenizer = load(OFF, Checkpoint(folder))
    for id in (-1, 19, 1 << 40):
        with pytest.raises(KeyError, match="ids are 0 to 18"):
            tokenizer.token_bytes(id)


def test_a_missing_file_is_named_with_what_to_do(tmp_path):
    with pytest.raises(ConfigError, match=r"got .*tokenizer\.json, which is no file: set"):
        load(OFF, Checkpoint(tmp_path))
    with pytest.raises(ConfigError, match="a model without a folder"):
        load(OFF, None)


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"added_tokens": 3}', '{"model": {"type": "Nope"}}', "\udcff"]
)
def test_a_broken_file_is_a_configuration_error(tmp_path, text):
    (tmp_path / "tokenizer.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ConfigError, match=r"tokenizer\.json"):
        load(OFF, Checkpoint(tmp_path))


def test_fingerprints_follow_what_they_are_of(folder):
    before = load(OFF, Checkpoint(folder)).vocabulary.fingerprints
    write(folder, "tokenizer_config.json", additional_special_tokens=["<tool>"])
    after = load(OFF, Checkpoint(folder)).vocabulary.fingerprints
    assert {name for name in before if before[name] != after[name]} == {"added_tokens"}
