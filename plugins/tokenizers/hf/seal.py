"""Encoding with shields: what a client wrote stays text, whatever it spells.

Strategy: a second tokenizer over the same model, in which every added token is spelled by one code
point that the text does not hold. The permitted spellings in the text become those code points, the
shields become what they stand for, and one call encodes it all: matching flags, normaliser and the
rules for a first piece stay as they are, and no spelling is left that could match. The model is
shared, so the second tokenizer costs milliseconds and next to no memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import chain, islice
from typing import final

from tokenizers import Tokenizer

from tokenwire.core.errors import RequestError
from tokenwire.core.prompt import Shields
from tokenwire.core.token_ids import TokenIds
from tokenwire.plugins.tokenizers.hf.file import FileToken, id_of
from tokenwire.plugins.tokenizers.hf.words import any_of

__all__ = ("Sealer",)


def _points(count: int, used: Set[str]) -> str:
    """`count` code points that are not `used`: private use planes from their end, then planes that
    hold no characters (Unicode 16)."""
    spare = map(chr, chain(range(0x10FFFD, 0xEFFFF, -1), range(0x40000, 0xE0000)))
    points = "".join(islice((point for point in spare if point not in used), count))
    if len(points) < count:
        raise RequestError("the text uses too many private and unassigned code points")
    return points


@final
class Sealed:
    """The second tokenizer, for one choice of code points."""

    def __init__(self, plain: Tokenizer, tokens: Sequence[FileToken], points: str) -> None:
        self.points = frozenset(points)
        self.point = {token.content: point for token, point in zip(tokens, points, strict=True)}
        self.tokenizer = Tokenizer(plain.model)
        if plain.normalizer is not None:
            self.tokenizer.normalizer = plain.normalizer
        if plain.pre_tokenizer is not None:
            self.tokenizer.pre_tokenizer = plain.pre_tokenizer
        self.tokenizer.add_tokens([token.spelled(self.point[token.content]) for token in tokens])
        self.true_id: dict[int, int] = {}
        """The second tokenizer's ids of added tokens -> the tokenizer's own."""
        for token in tokens:
            self.true_id[id_of(self.tokenizer, self.point[token.content])] = token.id


@final
class Sealer:
    """Made once a tokenizer. `tokens` have their true ids."""

    def __init__(self, plain: Tokenizer, tokens: Sequence[FileToken]) -> None:
        self._plain = plain
        self._tokens = tokens
        self._ids = {token.content: token.id for token in tokens}
        self._special = frozenset(token.id for token in tokens if token.special)
        self._spellings = any_of(self._ids)
        self._usual = Sealed(plain, tokens, _points(len(tokens), frozenset()))

    def encode(self, text: str, shields: Shields) -> TokenIds:
        values = {ord(point): spelling for point, spelling in shields.items()}
        parts = list(self._parts(text, values))
        sealed = self._sealed(parts)
        whole = "".join(sealed.point[part] if fixed else part for part, fixed in parts)
        ids = self._run(sealed, whole, shields)
        if sum(map(sealed.true_id.__contains__, ids)) != sum(fixed for _, fixed in parts):
            ids = self._one_by_one(sealed, parts, shields)
        true = sealed.true_id
        return TokenIds([true.get(id, id) for id in ids])

    def _parts(self, text: str, values: dict[int, str]) -> Iterator[tuple[str, bool]]:
        """Runs of text with the shields opened, and permitted spellings (True)."""
        end = 0
        for match in self._spellings.finditer(text):
            yield text[end : match.start()].translate(values), False
            yield match.group(), True
            end = match.end()
        yield text[end:].translate(values), False

    def _sealed(self, parts: list[tuple[str, bool]]) -> Sealed:
        used = set[str]().union(*(part for part, fixed in parts if not fixed))
        if self._usual.points.isdisjoint(used):
            return self._usual
        return Sealed(self._plain, self._tokens, _points(len(self._tokens), used))

    def _run(self, sealed: Sealed, text: str, shields: Shields) -> list[int]:
        """One call, in the second tokenizer's ids; releases the GIL."""
        ids = sealed.tokenizer.encode_batch_fast([text], add_special_tokens=False)[0].ids
        spelled = {self._ids[value] for value in shields.values() if value in self._ids}
        forbidden = (self._special | spelled) - sealed.true_id.keys()
        if forbidden.isdisjoint(ids):
            return ids
        return [part for id in ids for part in self._broken(id, forbidden)]

    def _broken(self, id: int, forbidden: frozenset[int]) -> Iterable[int]:
        """Why: a model whose own pieces hold a special token can spell it from plain text."""
        if id not in forbidden:
            return (id,)
        spelling = self._plain.id_to_token(id) or ""
        pieces = [
            piece.id
            for part in (spelling[:1], spelling[1:])
            for piece in self._plain.model.tokenize(part)
        ]
        if forbidden.isdisjoint(pieces):
            return pieces
        return [piece.id for letter in spelling for piece in self._plain.model.tokenize(letter)]

    def _one_by_one(
        self, sealed: Sealed, parts: list[tuple[str, bool]], shields: Shields
    ) -> list[int]:
        """Why: a normaliser or a token's flags can keep a code point from matching; then each
        permitted spelling is its id, and the runs between are encoded by themselves."""
        key = {true: key for key, true in sealed.true_id.items()}
        ids: list[int] = []
        for part, fixed in parts:
            if fixed:
                ids.append(key[self._ids[part]])
            elif part:
                ids += self._run(sealed, part, shields)
        return ids
