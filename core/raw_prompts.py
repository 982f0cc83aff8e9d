"""Prompts without a template: a client's text or ids, as the model's tokenizer begins a text. Pure.

Client text stays text here too: spellings of special tokens in it are plain text, unless the model
is set to take them (`parse.prompt_specials`), as base models are used. Ids may be any of the
vocabulary's. A gap is asked for with the model's own tokens, which no client text can spell.
"""

from __future__ import annotations

import re
from typing import Final, final

from msgspec import Struct

from tokenwire.core.call import RawPrompt
from tokenwire.core.detokenizer import Detokenizer, PieceTable
from tokenwire.core.errors import RequestError
from tokenwire.core.fim import gap_of
from tokenwire.core.ports.tokenizer import Tokenizer
from tokenwire.core.prompt import Prompt, Shields, Span
from tokenwire.core.shield import PRIVATE
from tokenwire.core.token_ids import TokenIds

__all__ = ("RawPrompts", "RawText")

NO_SHIELDS: Final[Shields] = {}


class RawText(Struct, frozen=True):
    """Text to encode, with the spellings in it that stay text."""

    text: str
    shields: Shields


@final
class RawPrompts:
    """`text` (None for a prompt of ids), encode it, then `prompt`."""

    def __init__(
        self, tokenizer: Tokenizer, *, model: str, fingerprint: str, takes_specials: bool = False
    ) -> None:
        self._tokenizer = tokenizer
        self._pieces = PieceTable(tokenizer)
        self._model = model
        self._fingerprint = fingerprint
        self._takes_specials = takes_specials
        added = tokenizer.vocabulary.added
        self._gap = gap_of({token.text for token in added})
        # Why the gap's too: some vocabularies do not mark them special, and they are not text.
        own = self._gap.tokens if self._gap else ()
        spellings = {*(token.text for token in added if token.special), *own} - {""}
        longest_first = sorted(spellings, key=lambda text: (-len(text), text))
        self._special = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")

    def bare(self, text: str, *, parse_special: bool | None = None) -> RawText:
        """Text to encode; `parse_special`: whether spellings in it are tokens (None: as set)."""
        takes = self._takes_specials if parse_special is None else parse_special
        return RawText(text, NO_SHIELDS) if takes else self._hidden(text)

    def text(self, raw: RawPrompt) -> RawText | None:
        """Raises RequestError for a suffix that the model has no tokens for."""
        if raw.ids is not None:
            if raw.suffix is not None:
                raise RequestError("suffix needs a prompt of text, not of ids", param="suffix")
            return None
        if raw.suffix is None:
            return self.bare(raw.text)
        gap = self._gap
        if gap is None:
            raise RequestError(
                f"model {self._model!r} has no tokens for filling a gap in its vocabulary: send no"
                " suffix, or ask a model that was trained on it",
                param="suffix",
                code="unsupported_field",
            )
        texts = (raw.suffix, raw.text) if gap.suffix_first else (raw.text, raw.suffix)
        points = self._points("".join(texts))
        one, two = (self._special.sub(lambda found: points[found.group()], text) for text in texts)
        shields = {point: spelling for spelling, point in points.items()}
        return RawText(f"{gap.before}{one}{gap.between}{two}{gap.behind}", shields)

    def prompt(self, raw: RawPrompt, ids: TokenIds | None) -> Prompt:
        """The prompt; `ids` are its text's, None for a prompt of ids. Raises RequestError for ids
        that are none of the model's."""
        if raw.ids is not None:
            self.check(raw.ids, "prompt")
            own, text = TokenIds(raw.ids), self.spell(raw.ids)
        else:
            assert ids is not None
            own, text = self._begun(ids) if raw.begin else ids, raw.text
        if not own:
            raise RequestError(
                "the prompt is empty, and this model has no token to start from", param="prompt"
            )
        spans = (Span(0, len(own), "client"),)
        return Prompt(own, text, "content", self._fingerprint, spans)

    def check(self, ids: tuple[int, ...], param: str) -> None:
        """Raises RequestError for the first id that is none of the tokenizer's."""
        size = self._tokenizer.vocabulary.size
        for id_ in ids:
            if not 0 <= id_ < size:
                raise RequestError(
                    f"{param}: model {self._model!r} has token ids 0 to {size - 1}, got {id_}",
                    param=param,
                )

    def spell(self, ids: tuple[int, ...]) -> str:
        """What ids spell, special tokens as they are written; half a character at the end is left
        out, as it is in answers."""
        detokenizer = Detokenizer(self._pieces)
        try:
            return "".join([detokenizer.push(id_).text for id_ in ids])
        except KeyError as error:
            raise RequestError(f"prompt: {error.args[0]}", param="prompt") from None

    def around(self, ids: TokenIds, most: int | None = None) -> TokenIds:
        """With what the tokenizer puts around a text, its end included; `most`: what is cut off,
        where it is longer, is the end of the text itself."""
        begun, end = self._begun(ids), self._tokenizer.vocabulary.end_ids
        room = None if most is None else max(most - len(end), 0)
        return TokenIds((*begun[:room], *end)[:most])

    def _begun(self, ids: TokenIds) -> TokenIds:
        # Why not twice: a client that may write the first token has perhaps done so.
        begin = self._tokenizer.vocabulary.begin_ids
        return ids if tuple(ids[: len(begin)]) == begin else TokenIds((*begin, *ids))

    def _hidden(self, text: str) -> RawText:
        if self._special.search(text) is None:
            return RawText(text, NO_SHIELDS)
        points = self._points(text)
        hidden = self._special.sub(lambda found: points[found.group()], text)
        return RawText(hidden, {point: spelling for spelling, point in points.items()})

    def _points(self, text: str) -> dict[str, str]:
        """A private code point, which the text does not hold, for each spelling in it."""
        used = set(PRIVATE.findall(text))
        free = (chr(code) for code in range(0xF0000, 0x10FFFE) if chr(code) not in used)
        return {spelling: next(free) for spelling in dict.fromkeys(self._special.findall(text))}
