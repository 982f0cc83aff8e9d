"""A model's small files out of a GGUF's metadata, without transformers and without torch.

GGUF (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md) keeps vocabulary, merges, chat
template and sizes as key-value pairs, but of the pre-tokenizer only a name. The names known here
are in `_pre_tokenizer`; of models, those with byte-level BPE ("gpt2") and the architectures in
ARCHITECTURES.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from tokenwire.core.errors import ConfigError

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from tokenizers.pre_tokenizers import PreTokenizer

__all__ = ("write_files",)

Fields: TypeAlias = Mapping[str, object]

CONTROL, USER_DEFINED = 3, 4
"""Token types of GGUF: special; added and shown as text."""

ARCHITECTURES = {
    "llama": "LlamaForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
}
"""general.architecture -> the class that transformers reads it with."""

WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""How Llama 3 and Qwen cut text, but for how many digits stay together."""

NO_SAMPLING: Mapping[str, bool | float] = {}


def write_files(
    gguf: Path, folder: Path, sampling: Mapping[str, bool | float] = NO_SAMPLING
) -> tuple[str, ...]:
    """Writes tokenizer.json, tokenizer_config.json, chat_template.jinja (where there is one),
    config.json and generation_config.json (with `sampling`) into `folder`; returns their names.

    Raises ConfigError for a GGUF that is broken or of a kind not known here.
    """
    fields, tensors = _read(gguf)
    tokens = _strings(fields, "tokenizer.ggml.tokens")
    _tokenizer(fields, tokens).save(str(folder / "tokenizer.json"), pretty=False)
    written = ["tokenizer.json"]
    documents = {
        "tokenizer_config.json": _tokenizer_config(fields, tokens),
        "config.json": _config(fields, tensors, len(tokens)),
        "generation_config.json": {**_ids(fields), **sampling},
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


def _read(gguf: Path) -> tuple[Fields, frozenset[str]]:
    from gguf import GGUFReader

    try:
        reader = GGUFReader(gguf)
        fields = {name: field.contents() for name, field in reader.fields.items()}
        return fields, frozenset(tensor.name for tensor in reader.tensors)
    except (ValueError, IndexError, KeyError, OSError) as error:
        raise ConfigError(f"{gguf}: wanted a GGUF file, and it cannot be read: {error}") from error


def _value(fields: Fields, key: str, kind: type[object]) -> object:
    value = fields.get(key)
    if not isinstance(value, kind):
        raise ConfigError(
            f"GGUF: wanted {kind.__name__} under {key!r}, got {value!r:.80}: "
            "the file is of a kind that cannot be converted"
        )
    return value


def _strings(fields: Fields, key: str) -> list[str]:
    return msgspec.convert(_value(fields, key, list), list[str])


def _tokenizer(fields: Fields, tokens: list[str]) -> Tokenizer:
    from tokenizers import AddedToken, Tokenizer
    from tokenizers.decoders import ByteLevel
    from tokenizers.models import BPE
    from tokenizers.normalizers import NFC

    kind = _value(fields, "tokenizer.ggml.model", str)
    if kind != "gpt2":
        raise ConfigError(f"GGUF: wanted a byte-level BPE vocabulary ('gpt2'), got {kind!r}")
    merges = [merge.split(" ", 1) for merge in _strings(fields, "tokenizer.ggml.merges")]
    vocabulary = {token: id for id, token in enumerate(tokens)}
    cut = str(_value(fields, "tokenizer.ggml.pre", str))
    pairs = [(left, right) for left, right in merges]
    # Why: Llama 3 takes a word that is in its vocabulary whole, whatever its merges say.
    tokenizer = Tokenizer(BPE(vocabulary, pairs, ignore_merges=cut == "llama-bpe"))
    tokenizer.pre_tokenizer = _pre_tokenizer(cut)
    if cut == "qwen2":
        tokenizer.normalizer = NFC()
    tokenizer.decoder = ByteLevel()
    types = msgspec.convert(_value(fields, "tokenizer.ggml.token_type", list), list[int])
    for token, token_type in zip(tokens, types, strict=True):
        if token_type in (CONTROL, USER_DEFINED):
            special = token_type == CONTROL
            add = tokenizer.add_special_tokens if special else tokenizer.add_tokens
            add([AddedToken(token, normalized=False, special=special)])
    return tokenizer


def _pre_tokenizer(name: str) -> PreTokenizer:
    from tokenizers import Regex
    from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence, Split

    match name:
        case "smollm":
            # Why: llama.cpp's expressions of that name are `\p{N}`, then GPT-2's.
            return Sequence([Digits(individual_digits=True), ByteLevel(add_prefix_space=False)])
        case "gpt-2":
            return ByteLevel(add_prefix_space=False)
        case "qwen2" | "llama-bpe":
            words = Regex(WORDS % ("" if name == "qwen2" else "{1,3}"))
            return Sequence(
                [Split(words, "isolated"), ByteLevel(add_prefix_space=False, use_regex=False)]
            )
    raise ConfigError(
        f"GGUF: pre-tokenizer {name!r} is not known; 'smollm', 'gpt-2', 'qwen2' and 'llama-bpe' are"
    )


def _ids(fields: Fields) -> dict[str, object]:
    """bos, eos and pad ids under the names that configuration files use."""
    names = {"bos": "bos", "eos": "eos", "pad": "padding"}
    found = {
        f"{ours}_token_id": fields.get(f"tokenizer.ggml.{theirs}_token_id")
        for ours, theirs in names.items()
    }
    return {key: id for key, id in found.items() if isinstance(id, int)}


def _tokenizer_config(fields: Fields, tokens: list[str]) -> dict[str, object]:
    names = {"bos": "bos", "eos": "eos", "pad": "padding", "unk": "unknown"}
    named = {}
    for ours, theirs in names.items():
        id = fields.get(f"tokenizer.ggml.{theirs}_token_id")
        if isinstance(id, int) and 0 <= id < len(tokens):
            named[f"{ours}_token"] = tokens[id]
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "add_bos_token": fields.get("tokenizer.ggml.add_bos_token") is True,
        "clean_up_tokenization_spaces": False,
        "model_max_length": fields.get(f"{fields.get('general.architecture')}.context_length"),
        **named,
    }


def _config(fields: Fields, tensors: frozenset[str], vocab_size: int) -> dict[str, object]:
    """config.json of an architecture that is known; its sizes under the names of transformers."""
    architecture = str(_value(fields, "general.architecture", str))
    if architecture not in ARCHITECTURES:
        known = " or ".join(map(repr, ARCHITECTURES))
        raise ConfigError(f"GGUF: wanted the architecture {known}, got {architecture!r}")

    def need(key: str, kind: type[object]) -> object:
        return _value(fields, f"{architecture}.{key}", kind)

    def get(key: str, default: object) -> object:
        return fields.get(f"{architecture}.{key}", default)

    hidden = msgspec.convert(need("embedding_length", int), int)
    heads = msgspec.convert(need("attention.head_count", int), int)
    head_dim = get("rope.dimension_count", hidden // heads)
    return {
        "architectures": [ARCHITECTURES[architecture]],
        "model_type": architecture,
        "hidden_act": "silu",
        "hidden_size": hidden,
        "intermediate_size": need("feed_forward_length", int),
        "num_hidden_layers": need("block_count", int),
        "num_attention_heads": heads,
        "num_key_value_heads": get("attention.head_count_kv", heads),
        "head_dim": get("attention.key_length", head_dim),
        "max_position_embeddings": need("context_length", int),
        "rms_norm_eps": need("attention.layer_norm_rms_epsilon", float),
        "rope_theta": get("rope.freq_base", 10000.0),
        "tie_word_embeddings": "output.weight" not in tensors,
        "vocab_size": vocab_size,
        "torch_dtype": "bfloat16",
        **_ids(fields),
    }
