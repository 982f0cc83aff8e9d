"""xgrammar (Dong et al., arXiv:2411.15100) as a backend: every kind of constraint."""

from __future__ import annotations

import json
import re
from threading import Lock
from typing import Any, final

import xgrammar as xgr

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
from tokenwire.plugins.engines.cuda.grammar.weight import refuse_heavy

__all__ = ("XGrammar",)

MOST_SPACE = 20
"""White space in a row, in JSON: without a bound a model may indent for ever."""
CACHE_BYTES = 256 << 20
PLACE = re.compile(r"^(\[[\d:]+\] )?(\S+\.(cc|h):\d+: )?")
"""A time, and a place in xgrammar's own source, which begin its messages."""
LITERAL = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]", re.DOTALL)
"""What stands for itself in a pattern: escapes and classes."""
DATA = ("const", "enum", "default", "examples")


@final
class XGrammar(Backend):
    name = "xgrammar"
    kinds = ("json_schema", "json_object", "regex", "grammar", "choice", "structural_tag")

    def __init__(self) -> None:
        self._lock = Lock()
        self._compilers: dict[int, tuple[Words, Any]] = {}
        """By the identity of the words, which stand beside so that it stays theirs."""

    def compile(self, constraint: Constraint, words: Words) -> Follow:
        refuse_heavy(constraint)
        if constraint.kind in ("json_schema", "structural_tag"):
            _refuse_lookahead(constraint.text)
        compiler = self._compiler(words)
        try:
            compiled = _compile(compiler, constraint)
        except (RuntimeError, ValueError, TypeError) as error:
            raise GrammarError(_reason(error)) from error
        return lambda: _Matcher(compiled)

    def _compiler(self, words: Words) -> Any:
        with self._lock:
            found = self._compilers.get(id(words))
            if found is None:
                info = xgr.TokenizerInfo(
                    list(words.pieces),
                    xgr.VocabType.RAW,
                    vocab_size=words.size,
                    stop_token_ids=list(words.eos_ids),
                )
                compiler = xgr.GrammarCompiler(info, max_threads=1, cache_limit_bytes=CACHE_BYTES)
                found = self._compilers[id(words)] = words, compiler
                if len(self._compilers) > WORDS_KEPT:
                    del self._compilers[next(iter(self._compilers))]
            return found[1]


def _compile(compiler: Any, constraint: Constraint) -> Any:
    text = constraint.text
    match constraint.kind:
        case "json_schema":
            return compiler.compile_json_schema(text, max_whitespace_cnt=MOST_SPACE)
        case "json_object":
            return compiler.compile_json_schema(
                '{"type":"object"}', max_whitespace_cnt=MOST_SPACE, strict_mode=False
            )
        case "regex":
            return compiler.compile_regex(text)
        case "grammar":
            return compiler.compile_grammar(text)
        case "choice":
            options = [{"type": "const_string", "value": each} for each in choices(text)]
            tag = {"type": "structural_tag", "format": {"type": "or", "elements": options}}
            return compiler.compile_structural_tag(json.dumps(tag))
        case "structural_tag":
            return compiler.compile_structural_tag(text)
    raise GrammarError(f"xgrammar knows no kind {constraint.kind!r}")


def _refuse_lookahead(text: str) -> None:
    """Why here: xgrammar leaves it out of a schema's patterns, with a warning of its own alone."""
    try:
        left: list[object] = [json.loads(text)]
    except ValueError:
        return  # xgrammar says what is wrong with it
    while left:
        each = left.pop()
        if isinstance(each, list):
            left += each
        if not isinstance(each, dict):
            continue
        left += [value for key, value in each.items() if key not in DATA]
        keyed = each.get("patternProperties")
        for pattern in (each.get("pattern"), *(keyed if isinstance(keyed, dict) else ())):
            if not isinstance(pattern, str):
                continue
            bare = LITERAL.sub("", pattern)
            if "(?=" in bare or "(?!" in bare:
                raise GrammarError(f"Lookahead is not supported: pattern {pattern[:100]!r}")


def _reason(error: Exception) -> str:
    """Its last line, without the place in xgrammar's own source."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    last = lines[-1] if lines else type(error).__name__
    return PLACE.sub("", last)[:300]


@final
class _Matcher(Matcher):
    def __init__(self, compiled: Any) -> None:
        self._matcher = xgr.GrammarMatcher(compiled)

    def fill(self, bits: Bits) -> None:
        if self._matcher.is_terminated():
            bits[:] = 0
            return
        # Why reset first: the library writes the mask only where it allows less than everything.
        bits[:] = -1
        self._matcher.fill_next_token_bitmask(bits.reshape(1, -1))

    def accept(self, id: int) -> bool:
        return not self._matcher.is_terminated() and bool(self._matcher.accept_token(id))
