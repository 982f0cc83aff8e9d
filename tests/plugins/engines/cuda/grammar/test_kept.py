"""What compiling keeps is bounded, whatever clients write into their grammars."""

from __future__ import annotations

from itertools import combinations
from types import SimpleNamespace

import pytest

from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import Constraint, TokenJob
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
