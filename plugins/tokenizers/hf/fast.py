"""fastokens, where it is installed and gives the reference's ids on a probe. Never a requirement.

The probe is made of what tells tokenizers apart: every added token between letters and spaces, all
kinds of white space, digits, case, combining marks, scripts, emoji, control characters, code.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

from tokenizers import Tokenizer as Library

__all__ = ("FastEncode", "fast_encoder")

FastEncode: TypeAlias = Callable[[str], list[int]]

log = logging.getLogger("tokenwire.tokenizers.hf")

SAMPLES = (
    "",
    " ",
    "Hello, world! It's 3.14159 or 1234567890, isn't it? DON'T WE'LL i'Ve",
    "   leading, trailing   \t\tand\r\n\r\n\n mixed \u00a0\u2003\u3000\u200bspace  \n",
    "def f(x):\n    return {'a': [x ** 2, 0x1F]}  # <b>&amp;</b>\n\n\n\treturn\n",
    '{"city": "Köln", "ok": true, "n": -1e-9, "s": "\\u00e9\\n"}',
    "日本語のテキスト。中文文本,한국어 텍스트! Ελληνικά Русский עברית العربية हिन्दी ไทย",
    "e\u0301 \u00e9 A\u030a \u212b \ufb01 ½ ² Ⅷ ①𝔘𝕟𝕚 \u1e9b\u0323 \u017f İ ß",
    "👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽 🇫🇷 ☃️ \U0001f9ff",
    "\x00\x01\x7f\x80\x9f\ufeff\ufffd\uffff\U0010fffd \ud7ff\ue000",
    "a" * 300 + " " * 70 + "!" * 90 + "\n" * 40 + "-=" * 40,
    "https://example.org/a/b?c=d&e=%20#f me@example.org C:\\dir\\f.txt camelCaseWords SHOUTING",
)


def fast_encoder(path: Path, library: Library) -> FastEncode | None:
    """None where fastokens is missing, cannot read the file, or gives one other id.

    A text that it gives up on (long runs exhaust its pattern matcher) is `library`'s to encode.
    """
    try:
        from fastokens import Tokenizer
    except ImportError:
        return None
    try:
        fast = Tokenizer.from_file(str(path))

        def encode(text: str) -> list[int]:
            ids: list[int] = fast.encode(text, False).ids
            return ids

        for text in _probe(library):
            if encode(text) != _reference(library, text):
                log.warning("%s: fastokens gives other ids for %.40r: not used", path, text)
                return None
    except Exception as error:  # Why: native code, which must never keep a model from starting.
        log.warning("%s: fastokens cannot be used: %s", path, error)
        return None

    def encode_or_fall_back(text: str) -> list[int]:
        try:
            return encode(text)
        except Exception as error:  # Why: native code, of which no list of errors is known.
            log.debug("fastokens gave up on %d characters: %s", len(text), error)
            return _reference(library, text)

    return encode_or_fall_back


def _reference(library: Library, text: str) -> list[int]:
    ids: list[int] = library.encode_batch_fast([text], add_special_tokens=False)[0].ids
    return ids


def _probe(library: Library) -> Iterator[str]:
    yield from SAMPLES
    added = [token.content for token in library.get_added_tokens_decoder().values()]
    yield "".join(f"{text} a{text}\n{text}1" for text in added)
    yield " ".join(added)
    yield "".join(text[:-1] + "." for text in added)
    tokens = [library.id_to_token(id) or "" for id in range(0, library.get_vocab_size(), 97)]
    yield " ".join(tokens)
    yield "".join(tokens)
