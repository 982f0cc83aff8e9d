"""What compiling keeps is bounded, whatever clients write into their grammars."""

from __future__ import annotations

from itertools import combinations
from types import SimpleNamespace
from typing import Literal

import numpy as np
import pytest

from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import Constraint, ReasoningBudget, TokenJob
from tokenwire.plugins.engines.cuda.constrained import GrammarError
from tokenwire.plugins.engines.cuda.grammar.backend import WORDS_KEPT
from tokenwire.plugins.engines.cuda.grammar.compiling import BACKENDS, CompiledGrammars

pytestmark = pytest.mark.torch

MARKS = tuple(f"<|{name}|>" for name in "abcdef")
PIECES = [*(bytes([byte]) for byte in range(256)), *(mark.encode() for mark in MARKS), b""]


class Tokenizer:
    vocabulary = SimpleNamespace(
        added=[
            SimpleNamespace(id=256 + at, text=mark, special=True) for at, mark in enumerate(MARKS)
        ]
    )

    def token_bytes(self, id: int) -> bytes:
        return PIECES[id]


@pytest.mark.parametrize("name", BACKENDS)
def test_vocabularies_of_any_special_tokens_are_a_few(name: str) -> None:
    pytest.importorskip(name)
    backend = BACKENDS[name]()
    made = CompiledGrammars(backend, Tokenizer(), len(PIECES), (262,))  # type: ignore[arg-type]
    for marks in combinations(MARKS, 3):
        text = 'root ::= "x" "' + '" "'.join(marks) + '"'
        job = TokenJob("j", "m", TokenIds([1]), constraint=Constraint("grammar", text))
        made.begin(job).result(60)()
    kept = backend._compilers if name == "xgrammar" else backend._tokenizers  # type: ignore[attr-defined]
    assert len(made._words) == len(kept) == WORDS_KEPT
    assert len({id(each.result()[1]) for each in made._made.values()}) <= WORDS_KEPT
    made.close()


@pytest.mark.parametrize("ends", [(262,), (149, 262)])
@pytest.mark.parametrize("start", ["now", "after_reasoning"])
@pytest.mark.parametrize("name", BACKENDS)
def test_ids_that_the_network_has_no_scores_for_are_left_out(
    name: str, start: Literal["now", "after_reasoning"], ends: tuple[int, ...]
) -> None:
    pytest.importorskip(name)
    size, end = 150, 262
    made = CompiledGrammars(BACKENDS[name](), Tokenizer(), size, ends)  # type: ignore[arg-type]
    reasoning = ReasoningBudget(start_ids=TokenIds([end]), end_ids=TokenIds([end]))
    constraint = Constraint("regex", "ab", start)
    job = TokenJob("j", "m", TokenIds([1]), constraint=constraint, reasoning=reasoning)
    if name == "llguidance" and ends == (end,):
        with pytest.raises(GrammarError, match="wants a token that ends answers"):
            made.begin(job).result(60)
        made.close()
        return
    held = made.begin(job).result(60)()
    for id in b"ab":
        bits = held.bits()
        assert bits is not None
        allowed = np.unpackbits(bits.view(np.uint8), bitorder="little").nonzero()[0]
        assert allowed.tolist() == [id]
        assert not held.is_over
        held.push(id)
    assert held.is_over
    made.close()
