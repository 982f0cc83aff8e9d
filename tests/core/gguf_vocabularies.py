"""Real tokenizers' vocabularies written into GGUFs, as llama.cpp's converter writes them."""

from __future__ import annotations

import json
import re
from pathlib import Path

from gguf import GGUFWriter, TokenType

__all__ = ("PRE", "write_vocabulary")

PRE = {
    "qwen3": "qwen2",
    "llama3_1": "llama-bpe",
    "deepseek_v3": "deepseek-v3",
    "gptoss": "gpt-4o",
    "smollm2": "smollm",
    "gemma3": "default",
    "llama2": "default",
}
"""Tokenizers by the names of tests/real_tokenizers.py -> tokenizer.ggml.pre."""

PADDED = 5
BYTE = re.compile(r"<0x[0-9A-F]{2}>")
RUNS_SCORE, ADDED_SCORE = -1e9, -1000.0


def write_vocabulary(path: Path, folder: Path, name: str) -> Path:
    """The tokenizer in `folder` in a GGUF without tensors, whose embedding has some rows more."""
    document = json.loads((folder / "tokenizer.json").read_text())
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    model, added = document["model"], document["added_tokens"]
    pieces = bool(model["byte_fallback"])
    ids = {**model["vocab"], **{token["content"]: token["id"] for token in added}}
    tokens = sorted(ids, key=lambda token: ids[token])
    assert [ids[token] for token in tokens] == list(range(len(tokens)))
    types = [TokenType.BYTE if pieces and BYTE.fullmatch(t) else TokenType.NORMAL for t in tokens]
    for token in added:
        kind = TokenType.CONTROL if token["special"] else TokenType.USER_DEFINED
        types[token["id"]] = kind
    if model["unk_token"]:
        types[ids[model["unk_token"]]] = TokenType.UNKNOWN

    writer = GGUFWriter(str(path), "llama")
    sizes(writer)
    writer.add_tokenizer_model("llama" if pieces else "gpt2")
    writer.add_tokenizer_pre(PRE[name])
    if pieces:
        numbered = zip(tokens, types, range(len(tokens)), strict=True)
        first = types.index(TokenType.NORMAL)
        scores = [_score(*each, first) for each in numbered]
        writer.add_token_scores([*scores, *[ADDED_SCORE] * PADDED])
        writer.add_add_space_prefix(name != "gemma3")
        tokens = [_spaced(*each) for each in zip(tokens, types, strict=True)]
    else:
        merges = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
        writer.add_token_merges(merges)
    count = len(tokens)
    writer.add_token_list([*tokens, *(f"[PAD{count + at}]" for at in range(PADDED))])
    writer.add_token_types([*types, *[TokenType.UNUSED] * PADDED])
    for key in ("bos", "eos"):
        entry = settings.get(f"{key}_token")
        text = entry["content"] if isinstance(entry, dict) else entry
        if text:
            getattr(writer, f"add_{key}_token_id")(ids[text])
    if "add_bos_token" in settings:
        writer.add_add_bos_token(settings["add_bos_token"])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def sizes(writer: GGUFWriter) -> None:
    writer.add_context_length(128)
    writer.add_embedding_length(8)
    writer.add_block_count(2)
    writer.add_feed_forward_length(16)
    writer.add_head_count(4)
    writer.add_layer_norm_rms_eps(1e-5)


def _score(token: str, kind: TokenType, id: int, first: int) -> float:
    """SentencePiece numbers pieces as it found them, but for runs of spaces, which it was given."""
    if kind == TokenType.USER_DEFINED:
        return ADDED_SCORE
    if kind != TokenType.NORMAL:
        return 0.0
    return RUNS_SCORE if len(token) > 1 and not token.strip("▁") else float(first - id)


def _spaced(token: str, kind: TokenType) -> str:
    return token.replace("▁", " ") if kind == TokenType.USER_DEFINED else token
