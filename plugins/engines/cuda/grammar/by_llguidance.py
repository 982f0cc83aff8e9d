"""llguidance (github.com/guidance-ai/llguidance) as a backend: all kinds but structural tags, which
it has in a form of its own."""

from __future__ import annotations

import re
from threading import Lock
from typing import final

import llguidance
import numpy as np
from llguidance.gbnf_to_lark import any_to_lark

from tokenwire.core.tokens import Constraint
from tokenwire.plugins.engines.cuda.constrained import GrammarError, choices
from tokenwire.plugins.engines.cuda.edits import Bits
from tokenwire.plugins.engines.cuda.grammar.backend import (
    WORDS_KEPT,
    Backend,
    Follow,
    Matcher,
    Words,
)

__all__ = ("LLGuidance",)


@final
class LLGuidance(Backend):
    name = "llguidance"
    kinds = ("json_schema", "json_object", "regex", "grammar", "choice")

    def __init__(self) -> None:
        self._lock = Lock()
        self._tokenizers: dict[int, tuple[Words, llguidance.LLTokenizer]] = {}
        """By the identity of the words, which stand beside so that it stays theirs."""

    def compile(self, constraint: Constraint, words: Words) -> Follow:
        tokenizer = self._tokenizer(words)
        try:
            grammar = _grammar(constraint)
        except GrammarError:
            raise
        except Exception as error:
            # Why everything: the translation from EBNF raises Exception itself.
            raise GrammarError(str(error)[:300]) from error
        first = llguidance.LLMatcher(tokenizer, grammar)
        if first.is_error():
            raise GrammarError(first.get_error().splitlines()[0][:300])
        size = -(-words.size // 32)
        return lambda: _Matcher(first.deep_copy(), size)

    def _tokenizer(self, words: Words) -> llguidance.LLTokenizer:
        if not words.eos_ids:
            raise GrammarError(
                "llguidance wants a token that ends answers, and the network has none: whoever "
                "runs the engine can set grammar to xgrammar"
            )
        with self._lock:
            found = self._tokenizers.get(id(words))
            if found is None:
                wrapped = llguidance.TokenizerWrapper(_Vocabulary(words))
                eos = list(words.eos_ids)
                made = llguidance.LLTokenizer(wrapped, n_vocab=words.size, eos_token=eos)
                found = self._tokenizers[id(words)] = words, made
                if len(self._tokenizers) > WORDS_KEPT:
                    del self._tokenizers[next(iter(self._tokenizers))]
            return found[1]


@final
class _Vocabulary:
    """As the library's wrapper wants one. Ids without bytes are special to it."""

    def __init__(self, words: Words) -> None:
        self.eos_token_id = words.eos_ids[0] if words.eos_ids else 0
        self.bos_token_id = None
        self.tokens = [piece or f"<|{id}|>".encode() for id, piece in enumerate(words.pieces)]
        self.special_token_ids = [id for id, piece in enumerate(words.pieces) if not piece]
        self._bytes = {bytes((byte,)): 0 for byte in range(256)}
        for id, piece in enumerate(words.pieces):
            if piece in self._bytes:
                self._bytes[piece] = id

    def __call__(self, text: bytes) -> list[int]:
        """Only for what the grammar forces, which this engine does not ask for."""
        return [self._bytes[bytes((byte,))] for byte in text]


def _grammar(constraint: Constraint) -> str:
    matcher, text = llguidance.LLMatcher, constraint.text
    grammar: str
    match constraint.kind:
        case "json_schema":
            grammar = matcher.grammar_from_json_schema(text)
        case "json_object":
            grammar = matcher.grammar_from_json_schema('{"type":"object"}')
        case "regex":
            grammar = matcher.grammar_from_regex(text)
        case "grammar":
            grammar = matcher.grammar_from_lark(any_to_lark(text))
        case "choice":
            options = "|".join(re.escape(each) for each in choices(text))
            grammar = matcher.grammar_from_regex(f"({options})")
        case kind:
            raise GrammarError(f"llguidance knows no kind {kind!r}: xgrammar may")
    return grammar


@final
class _Matcher(Matcher):
    def __init__(self, matcher: llguidance.LLMatcher, size: int) -> None:
        self._matcher = matcher
        self._size = size

    def fill(self, bits: Bits) -> None:
        if self._matcher.is_stopped():
            bits[:] = 0
            return
        found = np.frombuffer(self._matcher.compute_bitmask(), np.int32)
        bits[:] = found[: self._size]

    def accept(self, id: int) -> bool:
        return not self._matcher.is_stopped() and self._matcher.consume_token(id)
