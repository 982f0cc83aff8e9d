"""A model's small files out of a GGUF's metadata, without transformers and without torch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from tokenwire.core.gguf_config import config_fields, end_ids
from tokenwire.core.gguf_header import GgufHeader, open_gguf
from tokenwire.core.gguf_tokenizer import GgufVocabulary

__all__ = ("write_files",)

NO_SAMPLING: Mapping[str, bool | float] = {}
EMBEDDING = "token_embd.weight"


def write_files(
    gguf: Path, folder: Path, sampling: Mapping[str, bool | float] = NO_SAMPLING
) -> tuple[str, ...]:
    """Writes tokenizer.json, tokenizer_config.json, chat_template.jinja (where there is one),
    config.json and generation_config.json (with `sampling`) into `folder`; returns their names.

    Raises ConfigError for a GGUF that is broken or of a kind not known here.
    """
    data, header = open_gguf(gguf, arrays=True)
    data.close()
    fields = header.fields
    config = _config(header, str(gguf))
    vocabulary = GgufVocabulary(fields, str(gguf))
    ids = _ids(fields, vocabulary)
    vocabulary.tokenizer().save(str(folder / "tokenizer.json"), pretty=False)
    written = ["tokenizer.json"]
    documents = {
        "tokenizer_config.json": _tokenizer_config(config, vocabulary),
        "config.json": {"vocab_size": len(vocabulary.tokens), **config, **ids},
        "generation_config.json": {**ids, **sampling},
    }
    for name, document in documents.items():
        text = msgspec.json.format(msgspec.json.encode(document), indent=2)
        (folder / name).write_bytes(text + b"\n")
        written.append(name)
    template = fields.get("tokenizer.chat_template")
    if isinstance(template, str):
        (folder / "chat_template.jinja").write_text(template, encoding="utf-8", newline="")
        written.append("chat_template.jinja")
    return tuple(written)


def _config(header: GgufHeader, where: str) -> dict[str, object]:
    """config.json, with vocab_size where the embedding is there to tell it."""
    shapes = {tensor.name: tensor.shape for tensor in header.tensors}
    config = config_fields(header.fields, shapes, where)
    if EMBEDDING in shapes:
        config["vocab_size"] = shapes[EMBEDDING][0]
    return config


def _ids(fields: Mapping[str, object], vocabulary: GgufVocabulary) -> dict[str, object]:
    """bos, eos and pad ids under the names that configuration files use."""
    found: dict[str, object] = {}
    for ours, theirs in {"bos": "bos", "pad": "padding"}.items():
        id = fields.get(f"tokenizer.ggml.{theirs}_token_id")
        if isinstance(id, int):
            found[f"{ours}_token_id"] = id
    ends = list(dict.fromkeys([*end_ids(fields), *vocabulary.turn_ends()]))
    if ends:
        found["eos_token_id"] = ends[0] if len(ends) == 1 else ends
    return found


def _tokenizer_config(
    config: Mapping[str, object], vocabulary: GgufVocabulary
) -> dict[str, object]:
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "add_bos_token": vocabulary.add_bos,
        "clean_up_tokenization_spaces": False,
        "model_max_length": config.get("max_position_embeddings"),
        **vocabulary.named(),
    }
