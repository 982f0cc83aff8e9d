"""A model's small files in a folder: tokenizer, configs, chat template. Opens none until asked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import final

import msgspec

from tokenwire.core.errors import ConfigError

__all__ = ("Checkpoint",)


@final
class Checkpoint:
    """A Hugging Face model folder, or any folder with a tokenizer.json in it."""

    __slots__ = ("folder", "weights")

    def __init__(self, folder: Path, *, weights: Path | None = None) -> None:
        self.folder = folder
        self.weights = weights or folder
        """Where an engine finds them: the folder, or a file of its own."""

    @property
    def tokenizer_json(self) -> Path:
        return self.folder / "tokenizer.json"

    def config(self) -> Mapping[str, object]:
        """config.json; empty when there is none."""
        return self._read("config.json")

    def generation_config(self) -> Mapping[str, object]:
        return self._read("generation_config.json")

    def preprocessor_config(self) -> Mapping[str, object]:
        return self._read("preprocessor_config.json")

    def tokenizer_config(self) -> Mapping[str, object]:
        return self._read("tokenizer_config.json")

    def chat_template(self) -> str | None:
        """chat_template.jinja, else the chat_template of tokenizer_config.json: a text, or the
        entry "default" of a list of named ones; None when there is neither."""
        path = self.folder / "chat_template.jinja"
        if path.is_file():
            return path.read_text(encoding="utf-8")
        template = self.tokenizer_config().get("chat_template")
        if isinstance(template, str):
            return template
        if isinstance(template, list):
            named = {
                entry.get("name"): entry.get("template")
                for entry in template
                if isinstance(entry, dict)
            }
            default = named.get("default")
            return default if isinstance(default, str) else None
        return None

    def _read(self, name: str) -> Mapping[str, object]:
        path = self.folder / name
        if not path.is_file():
            return {}
        try:
            return msgspec.json.decode(path.read_bytes(), type=dict[str, object])
        except msgspec.MsgspecError as error:
            raise ConfigError(
                f"{path}: wanted a JSON object, got something else ({error})"
            ) from error
