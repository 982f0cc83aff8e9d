"""What a law of the tokenizer kit works with: the tokenizer, texts, machines, a way to complain."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeAlias, final

from hypothesis import strategies as st

from tokenwire.core.detokenizer import PieceTable
from tokenwire.core.ports.tokenizer import Tokenizer
from tokenwire.core.prompt import Piece
from tokenwire.core.testing.laws import Probe
from tokenwire.core.token_ids import TokenIds

__all__ = ("TEXTS", "Machine", "MakeMachine", "TokenizerProbe")

TEXTS = (
    "",
    " ",
    "Hello, world! It's 3.14159, isn't it?",
    "  leading,\ttabs\t\t, ends \r\n\r\n\n  ",
    "wave 🌊潮 👩‍👩‍👧‍👦 👍🏽 🇫🇷 naïve Köln हिन्दी 한국어 ไทย العربية עברית",
    "def f(x):\n    return {'a': [x ** 2, 0x1F]}  # <b>&amp;</b>\n",
    "\x00\x01\x7f\u200b\ufeff",
    "<| <|im_ </ > [INST] {{x}} ▲" + "a" * 60 + " " * 20,
)


class Machine(Protocol):
    """What `Detokenizer` is to its caller."""

    def push(self, id: int) -> Piece: ...
    def save(self) -> object: ...
    def restore(self, state: object) -> None: ...


MakeMachine: TypeAlias = Callable[[PieceTable], Machine]


@final
class TokenizerProbe(Probe):
    """For one run of one law."""

    port = "tokenizer"

    def __init__(
        self,
        tokenizer: Tokenizer,
        law: str,
        *,
        texts: Iterable[str],
        markers: Iterable[str],
        normal: Callable[[str], str],
        machine: MakeMachine,
        lacks: Callable[[str], bool],
        examples: int,
    ) -> None:
        super().__init__(law, examples=examples)
        self.tokenizer = tokenizer
        self.texts = tuple(text for text in texts if not any(map(lacks, text)))
        special = [token.text for token in tokenizer.vocabulary.added if token.special]
        self.specials = tuple(special[:8])
        """Some of them: a vocabulary may have thousands."""
        self.forbidden = (*self.specials, *markers)
        self.ids = {token.text: token.id for token in tokenizer.vocabulary.added}
        self.normal = normal
        self._machine = machine
        self._lacks = lacks
        self._table = PieceTable(tokenizer)

    def plain_text(self) -> st.SearchStrategy[str]:
        """Any text of assigned characters, none private, all of them in the vocabulary."""
        letters = st.characters(exclude_categories=("Cs", "Co", "Cn"))
        return st.text(letters.filter(lambda letter: not self._lacks(letter)), max_size=40)

    def machine(self) -> Machine:
        return self._machine(self._table)

    def pieces(self, ids: TokenIds) -> list[str]:
        machine = self.machine()
        return [machine.push(id).text for id in ids]

    def decode(self, ids: TokenIds) -> str:
        return "".join(self.pieces(ids))

    def each(self, check: Callable[[str], None]) -> None:
        """Check the given texts, then generated ones."""
        for text in self.texts:
            check(text)
        self.every(self.plain_text(), check)
