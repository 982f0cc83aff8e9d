"""The next turn's prompt on top of the last one's own ids, where the text says the same. Pure.

A prompt that was answered, with a further turn, is rendered anew by the next request. Where the new
text begins with the old prompt's, and what follows up to the turn's end reads as the old answer
does, the old prompt's ids and the answer's own ids are its beginning: exactly what the engine has
in its KV cache, also where encoding the text again would give other ids.

"Reads as": the family's own parser makes the same parts of both, where arguments are compared as
JSON values and white space around a part does not count. So nothing is spliced where the template
leaves reasoning out, or where a client has changed a word, or where the answer had special tokens
that its parser dropped.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import TypeAlias, final

from msgspec import Struct

from tokenwire.core.detokenizer import PieceTable
from tokenwire.core.dialogue import ToolSpec
from tokenwire.core.events import Event, Started
from tokenwire.core.fold import Part, fold
from tokenwire.core.ports.dialect import ParserMaker, ParserSetup
from tokenwire.core.prompt import Phase, Piece, Shields
from tokenwire.core.shield import Shield, restored
from tokenwire.core.token_history import Kept, KeptAnswer
from tokenwire.core.token_ids import TokenIds

__all__ = ("Ask", "Spliced", "Splicer")

NONE = re.compile(r"(?!)")
Said: TypeAlias = tuple[str, ...]
"""A part in a form that compares: its kind, then what it says."""


class Ask(Struct, frozen=True):
    """A prompt to be made: its text as rendered, and what it may call."""

    text: str
    shields: Shields
    tools: tuple[ToolSpec, ...]


class Spliced(Struct, frozen=True):
    """The prompt is `ids` and then the ids of `rest`."""

    ids: TokenIds
    rest: str
    prompt_ids: int
    """How many of `ids` are the earlier prompt's; the others are its answer's."""
    characters: int
    """Of the text, those that the earlier prompt takes."""


@final
class Splicer:
    """Made once a model."""

    def __init__(self, shield: Shield, parser: ParserMaker, pieces: PieceTable) -> None:
        self._shield = shield
        self._parser = parser
        self._pieces = pieces
        ends = {spelling for spelling in parser.stop_strings if spelling}
        ends |= {pieces.specials[id] for id in pieces.eos_ids if id in pieces.specials}
        self._end = re.compile("|".join(map(re.escape, sorted(ends)))) if ends else NONE
        specials = sorted(pieces.specials.values(), key=len, reverse=True)
        self._special = re.compile("|".join(map(re.escape, specials))) if specials else NONE

    def kept_answer(self, ids: TokenIds) -> KeptAnswer:
        """What to keep of an answer's ids."""
        read = self._read(ids)
        text = "".join([piece.text for piece in read])
        spells = any([piece.special for piece in read]) or self._shield.spells(text)
        return KeptAnswer(ids.to_le(), text, not spells)

    def splice(self, ask: Ask, kept: Kept) -> Spliced | None:
        """None: the text does not go on as the kept prompt and one of its answers did."""
        start = kept.characters
        if not self._shield.is_usual(ask.shields) or not self.has_prompt(ask.text, kept):
            return None
        for answer in kept.answers:
            end = self._goes_on(ask, start, answer, kept.phase)
            if end is not None:
                prompt = kept.prompt
                ids = prompt + TokenIds.from_le(answer.ids)
                return Spliced(TokenIds(ids), ask.text[end:], len(prompt), start)
        return None

    def has_prompt(self, text: str, kept: Kept) -> bool:
        """Whether the text begins with the kept prompt's."""
        begin = text[: kept.characters]
        return len(begin) == kept.characters and _digest(begin) == kept.text_digest

    def text(self, ids: TokenIds) -> str:
        """Of a kept prompt."""
        return self._pieces.decode(ids)

    def shown(self, ask: Ask) -> str:
        """The text with what clients wrote as they wrote it."""
        return restored(ask.text, ask.shields)

    def ends_turn(self, text: str, at: int) -> bool:
        """Whether a turn's end stands at `at` or behind it."""
        return self._end.search(text, at) is not None

    def answer_text(self, text: str, start: int) -> str | None:
        """The assistant's turn that begins at `start`, up to its end; None without an end."""
        end = self._end.search(text, start)
        return None if end is None else text[start : end.start()]

    def parts(self, ask: Ask, pieces: Iterable[Piece], phase: Phase) -> list[Said]:
        """What an answer says."""
        setup = ParserSetup(phase=phase, tools=ask.tools, parse_tools=bool(ask.tools))
        parser = self._parser.parser(setup)
        events: list[Event] = [Started(0)]
        for piece in pieces:
            events += parser.push(piece)
        events += parser.flush()
        return [_compared(part, ask.shields) for part in fold(events).choices[0].parts]

    def said(self, ask: Ask, answer: KeptAnswer, phase: Phase) -> list[Said]:
        """`parts` of a kept answer."""
        return self.parts(ask, self._read(TokenIds.from_le(answer.ids)), phase)

    def rendered(self, ask: Ask, turn: str, phase: Phase) -> list[Said]:
        """`parts` of a turn as a template writes it."""
        return self.parts(ask, self._cut(turn), phase)

    def _goes_on(self, ask: Ask, start: int, answer: KeptAnswer, phase: Phase) -> int | None:
        """Where the answer ends in the text, if it is there."""
        turn = self.answer_text(ask.text, start)
        if turn is None:
            return None
        if answer.is_plain and turn.startswith(answer.text):
            # Why not all of the turn: white space that the template adds is no id of the answer.
            return start + len(answer.text) if not turn[len(answer.text) :].strip() else None
        if answer.is_plain and turn.strip() == answer.text.strip():
            return start + _said_end(turn, answer.text)
        read, cut = self._read(TokenIds.from_le(answer.ids)), list(self._cut(turn))
        if _adds_specials(read, cut) or self.parts(ask, read, phase) != self.parts(ask, cut, phase):
            return None
        return start + _said_end(turn, answer.text)

    def _read(self, ids: Sequence[int]) -> Sequence[Piece]:
        return self._pieces.detokenizer().pieces(ids)

    def _cut(self, turn: str) -> Iterator[Piece]:
        """Rendered text as pieces: what spells a special token here is one."""
        at = 0
        for match in self._special.finditer(turn):
            if match.start() > at:
                yield Piece(turn[at : match.start()])
            yield Piece(match.group(), special=True)
            at = match.end()
        if at < len(turn):
            yield Piece(turn[at:])


def _said_end(turn: str, answer: str) -> int:
    """Where in the turn the answer ends: white space that the template adds behind it ("x </s>") is
    the prompt's."""
    end = len(turn.rstrip())
    own = answer[len(answer.rstrip()) :]
    return end + len(own) if turn.startswith(own, end) else len(turn)


def _adds_specials(read: Iterable[Piece], cut: Iterable[Piece]) -> bool:
    """Whether special tokens stand in the answer that the turn does not have. A parser drops stray
    ones, so nobody was shown them, and nobody would see them in the next prompt."""
    return bool(_specials(read) - _specials(cut))


def _specials(pieces: Iterable[Piece]) -> Counter[str]:
    return Counter(piece.text for piece in pieces if piece.special)


def _compared(part: Part, shields: Shields) -> Said:
    text = restored(part.text, shields)
    if part.kind == "tool_call":
        return part.kind, part.name, *_value(text), "" if part.complete else "cut off"
    return part.kind, text.strip()


def _value(arguments: str) -> tuple[str, str]:
    try:
        return "json", json.dumps(json.loads(arguments), sort_keys=True)
    except (ValueError, RecursionError):
        return "text", arguments


def _digest(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()
