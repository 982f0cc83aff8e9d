"""How byte-level vocabularies cut text before they merge, by the name that a GGUF gives of it.

A name stands for what the models' own tokenizer.json says, letter for letter. Knows no file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from tokenwire.core.errors import ConfigError

if TYPE_CHECKING:
    from tokenizers.normalizers import Normalizer
    from tokenizers.pre_tokenizers import PreTokenizer

__all__ = ("CUTS", "Cut", "cut_named", "normalizer", "pre_tokenizer")


class Cut(Struct, frozen=True):
    patterns: tuple[str, ...] = ()
    """Regular expressions: each cuts what those before it left whole. None: GPT-2's, built in."""
    digits: bool = False
    """Every digit is cut off by itself: before GPT-2's expression, or behind the last."""
    whole_words: bool = False
    """A word that is in the vocabulary is taken whole, whatever the merges say."""
    nfc: bool = False
    """Text is normalised to NFC first."""
    begins: bool = False
    """A text begins with the token `bos` where the file does not say."""
    trims: bool = True
    """Of offsets only; published with the vocabulary, so a part of its fingerprint."""


def _words(digits: str) -> str:
    """Llama 3's and Qwen's."""
    return (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
        + digits
        + r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )


def _cased(ending: str, digits: str) -> str:
    """Mistral's tekken and GPT-4o's: words also end where small letters do."""
    upper, lower = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
    first = r"[^\r\n\p{L}\p{N}]?"
    return (
        rf"{first}{upper}*{lower}+{ending}|{first}{upper}+{lower}*{ending}"
        rf"|\p{{N}}{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )


IDEOGRAPHS = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
CODER_IDEOGRAPHS = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
DEEPSEEK_WORDS = (
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"""
    "|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)

GPT2 = Cut()
QWEN = Cut((_words(""),), nfc=True, trims=False)
LLAMA3 = Cut((_words("{1,3}"),), whole_words=True, begins=True)
CUTS: Mapping[str, Cut] = {
    "gpt-2": GPT2,
    "smollm": Cut(digits=True),
    "qwen2": QWEN,
    "deepseek-r1-qwen": QWEN,
    "llama-bpe": LLAMA3,
    "llama3": LLAMA3,
    "llama-v3": LLAMA3,
    "tekken": Cut((_cased("", ""),), whole_words=True, begins=True),
    "gpt-4o": Cut((_cased("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "{1,3}"),), whole_words=True),
    "deepseek-v3": Cut((r"\p{N}{1,3}", IDEOGRAPHS, DEEPSEEK_WORDS)),
    "deepseek-coder": Cut(("[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", CODER_IDEOGRAPHS), digits=True),
}
"""Known names."""


def cut_named(name: str, where: str) -> Cut:
    """Raises ConfigError, which begins with `where` and lists the known names."""
    if name not in CUTS:
        raise ConfigError(
            f"{where}: tokenizer.ggml.pre: wanted a pre-tokenizer of {', '.join(CUTS)}; got "
            f"{name!r}: serve the model's Hugging Face folder, or name its tokenizer.json "
            "as the model's `tokenizer`"
        )
    return CUTS[name]


def pre_tokenizer(cut: Cut) -> PreTokenizer:
    from tokenizers import Regex
    from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence, Split

    digits = [Digits(individual_digits=True)] if cut.digits else []
    if not cut.patterns:
        last = ByteLevel(add_prefix_space=False)
        return Sequence([*digits, last]) if digits else last
    splits = [Split(Regex(pattern), "isolated") for pattern in cut.patterns]
    last = ByteLevel(add_prefix_space=False, trim_offsets=cut.trims, use_regex=False)
    return Sequence([*splits, *digits, last])


def normalizer(cut: Cut) -> Normalizer | None:
    from tokenizers.normalizers import NFC

    return NFC() if cut.nfc else None
