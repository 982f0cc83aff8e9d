"""Rendered text to ids, segment by segment: what was encoded before is not encoded again. Pure.

Strategy: text is cut before each occurrence of one special token, the one that begins a turn in
the model's template, and long segments once more at the tokenizer's `breaks`. There
`encode(a + b)` is `encode(a) + encode(b)`, so ids equal those of the whole text, and a segment's
ids depend on its text alone. Of a conversation's next turn only what is new is encoded; of a very
long text one chunk at a time, so that a thread never keeps the event loop waiting for long. Knows
no dialogue.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias, final

from tokenwire.core.ports.tokenizer import Tokenizer
from tokenwire.core.prompt import Shields
from tokenwire.core.shield import PRIVATE
from tokenwire.core.token_ids import TokenIds

__all__ = ("CHUNK", "Encoding", "PromptEncoder", "turn_mark")

CHUNK = 4_096
"""Characters of a segment from which on it is cut at a break."""
CACHED_CHARACTERS = 64 * 1024 * 1024
ENTRY = 256
"""What a kept segment takes beside its text, in characters; about."""

Key: TypeAlias = tuple[str, tuple[tuple[str, str], ...]]
KNOWN = ""
"""Instead of a shield's code point: the ids were given."""
NO_VALUES: tuple[tuple[str, str], ...] = ()


def turn_mark(tokenizer: Tokenizer, sample: str) -> str | None:
    """Of the tokens before which text may be cut, the one that stands most often in `sample`, a
    rendered dialogue of several turns; None where none does."""
    counts = {cut: sample.count(cut) for cut in tokenizer.cuts if cut in sample}
    return max(counts, key=lambda cut: (counts[cut], cut)) if counts else None


@final
class Encoding:
    """One text under way. `missing` are its segments that nobody has encoded yet."""

    __slots__ = ("_keys", "found", "missing")

    def __init__(self, keys: list[Key], found: dict[Key, TokenIds]) -> None:
        self._keys = keys
        self.found = found
        self.missing = [key for key in dict.fromkeys(keys) if key not in found]

    @property
    def characters(self) -> int:
        """How much text is still to be encoded."""
        return sum(len(text) for text, _ in self.missing)

    def pieces(self) -> Iterator[tuple[str, TokenIds]]:
        """The segments in order, with their ids. Once nothing is missing."""
        return ((key[0], self.found[key]) for key in self._keys)

    def ids(self) -> TokenIds:
        """Once nothing is missing."""
        return _joined(self._keys, self.found) or TokenIds()


@final
class PromptEncoder:
    """`begin` a text, `fill` what it misses (in a thread, if it is much), `keep` that, take ids."""

    def __init__(
        self, tokenizer: Tokenizer, mark: str | None, *, capacity: int = CACHED_CHARACTERS
    ) -> None:
        """`mark`: see `turn_mark`; None: text is never cut, and nothing is kept."""
        self._tokenizer = tokenizer
        self.mark: Final = mark
        self._capacity = capacity
        self._size = 0
        self._cache: OrderedDict[Key, TokenIds] = OrderedDict()

    def begin(
        self, text: str, shields: Shields, known: Sequence[tuple[str, TokenIds]] = ()
    ) -> Encoding:
        """`known`: runs with which the text begins, and their ids, whatever encoding them gives."""
        keys: list[Key] = []
        found: dict[Key, TokenIds] = {}
        at = 0
        for run, ids in known:
            at += len(run)
            of_run = self._keys(run, shields, found)
            if _joined(of_run, found) == ids:
                keys += of_run  # Why: small segments tell better where a part ends.
            else:
                keys.append((run, ((KNOWN, str(len(keys))),)))
                found[keys[-1]] = ids
        keys += self._keys(text[at:], shields, found)
        return Encoding(keys, found)

    def _keys(self, text: str, shields: Shields, found: dict[Key, TokenIds]) -> list[Key]:
        """Of a text's segments; what the cache has of them is added to `found`."""
        keys = [(part, _values(part, shields)) for part in self._cut(text)]
        for key in keys:
            ids = self._cache.get(key)
            if ids is not None:
                found[key] = ids
                self._cache.move_to_end(key)
        return keys

    def fill(self, encoding: Encoding) -> None:
        """Encode what is missing. Safe to call from a thread."""
        for key in encoding.missing:
            text, values = key
            encoding.found[key] = self._tokenizer.encode(text, dict(values))

    def keep(self, encoding: Encoding) -> None:
        """Remember what was filled in. Not from a thread."""
        if self.mark is None:
            return
        for key in encoding.missing:
            if key not in self._cache:
                self._size += len(key[0]) + ENTRY
            self._cache[key] = encoding.found[key]
        while self._size > self._capacity:
            (text, _), _ = self._cache.popitem(last=False)
            self._size -= len(text) + ENTRY

    def ids(self, text: str, shields: Shields) -> TokenIds:
        """All at once, here."""
        encoding = self.begin(text, shields)
        self.fill(encoding)
        self.keep(encoding)
        return encoding.ids()

    def _cut(self, text: str) -> Iterator[str]:
        mark = self.mark
        if not text:
            return
        if mark is None:
            yield from self._chunks(text)
            return
        first, *rest = text.split(mark)
        if first:
            yield from self._chunks(first)
        for part in rest:
            yield from self._chunks(mark + part)

    def _chunks(self, text: str) -> Iterator[str]:
        breaks = self._tokenizer.breaks
        start = 0
        while breaks is not None and len(text) - start > CHUNK:
            match = breaks.search(text, start + CHUNK)
            if match is None:
                break
            yield text[start : match.start()]
            start = match.start()
        yield text[start:] if start else text


def _joined(keys: Iterable[Key], found: Mapping[Key, TokenIds]) -> TokenIds | None:
    """None where one is not found."""
    whole = TokenIds()
    for key in keys:
        ids = found.get(key)
        if ids is None:
            return None
        whole.extend(ids)
    return whole


def _values(text: str, shields: Shields) -> tuple[tuple[str, str], ...]:
    """Of `shields`, those whose code points stand in `text`, in a fixed order."""
    if not shields or text.isascii():
        return NO_VALUES
    points = sorted(set(PRIVATE.findall(text)))
    return tuple((point, shields[point]) for point in points if point in shields)
