"""A GGUF file as a checkpoint: its small files are written once, and found again."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from tests.core.test_fetch import gguf
from tokenwire.core.checkpoint import Checkpoint
from tokenwire.core.errors import ConfigError
from tokenwire.core.gguf_checkpoint import checkpoint_at


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"XDG_CACHE_HOME": str(tmp_path / "cache")}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return gguf(tmp_path / "tiny.gguf")


def test_a_folder_is_its_own_checkpoint(tmp_path: Path) -> None:
    found = checkpoint_at(tmp_path)
    assert (found.folder, found.weights) == (tmp_path, tmp_path)


def test_the_weights_stay_and_the_small_files_are_written(model: Path, environ) -> None:
    found = checkpoint_at(model, environ)
    assert found.weights == model
    assert found.tokenizer_json.is_file()
    assert found.config()["model_type"] == "llama"
    assert found.chat_template()
    assert {each.name for each in model.parent.iterdir()} == {"tiny.gguf", "cache"}


def test_they_are_written_once(model: Path, environ) -> None:
    first = checkpoint_at(model, environ)
    (first.folder / "tokenizer.json").write_text("kept")
    assert checkpoint_at(model, environ).tokenizer_json.read_text() == "kept"


def test_another_file_of_that_name_is_read_anew(model: Path, environ) -> None:
    first = checkpoint_at(model, environ)
    os.utime(model, (1, 1))
    assert checkpoint_at(model, environ).folder != first.folder


def test_many_at_once_find_the_same_whole_folder(model: Path, environ) -> None:
    found: list[Checkpoint] = []
    threads = [
        threading.Thread(target=lambda: found.append(checkpoint_at(model, environ)))
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    assert len({each.folder for each in found}) == 1
    assert [each.name for each in found[0].folder.parent.iterdir()] == [found[0].folder.name]


def test_what_is_not_there_or_cannot_be_written_is_said(model: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="wanted a GGUF file, there is none"):
        checkpoint_at(tmp_path / "no.gguf", {})
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="set XDG_CACHE_HOME to a folder that can be written"):
        checkpoint_at(model, {"XDG_CACHE_HOME": str(tmp_path / "file")})


def test_a_broken_file_leaves_nothing_behind(tmp_path: Path, environ) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF")
    with pytest.raises(ConfigError):
        checkpoint_at(broken, environ)
    assert list((tmp_path / "cache" / "tokenwire" / "gguf").iterdir()) == []
