"""What the mock says, as steps of ids: a fixed answer, one that a constraint allows, or a script.
Knows no job and no time."""

from __future__ import annotations

import math
from typing import final

from msgspec import Struct

from tokenwire.core.ports.tokenizer import Tokenizer
from tokenwire.core.script import Script, ScriptStep
from tokenwire.core.token_ids import NO_IDS, TokenIds
from tokenwire.core.tokens import Constraint
from tokenwire.plugins.engines.mock.settings import MockSettings
from tokenwire.plugins.engines.mock.spelling import spelled

__all__ = ("PLAUSIBLE", "Lines", "Repertoire")

WORDS = " the a of and to in is it on that for with as was at by this be are from or have an not"


class Lines(Struct, frozen=True):
    """What one choice plays."""

    steps: tuple[ScriptStep, ...]
    finish: str = "eos"
    eos: TokenIds = NO_IDS
    """The id that ends the answer; none where the model has no such id."""
    again: bool = False
    """Starts over where eos may not end it; a script is played as it stands."""
    logprobs: tuple[tuple[float, ...], ...] = ()


@final
class Repertoire:
    """The fixed answer, encoded once, and the ids that pass for its alternatives."""

    def __init__(
        self, settings: MockSettings, tokenizer: Tokenizer | None, eos_ids: tuple[int, ...]
    ) -> None:
        self._eos = TokenIds(eos_ids[:1])
        self._tokenizer = tokenizer
        self._free = settings.answer
        self._answer = _steps(_encode(settings.answer, tokenizer))
        self._thought = _steps(_encode(settings.thought, tokenizer))
        # Why kept: an answer may have thousands of steps, and is asked for twice a job.
        self._plain = Lines(self._answer, eos=self._eos, again=True)
        words = _encode(settings.answer + WORDS, tokenizer)
        self.likely = tuple(dict.fromkeys(id for id in words if id not in eos_ids))

    def answer(self, reasoning_end: TokenIds) -> Lines:
        """The fixed answer, after a thought that ends with `reasoning_end`, where there is one."""
        if not reasoning_end:
            return self._plain
        return Lines((*self._thoughts(reasoning_end), *self._answer), eos=self._eos, again=True)

    def held(self, constraint: Constraint, reasoning_end: TokenIds) -> Lines:
        """A short answer that keeps to the constraint. Raises ValueError where none was found."""
        text = spelled(constraint, self._free)
        thought = self._thoughts(reasoning_end) if constraint.start == "after_reasoning" else ()
        return Lines((*thought, *_steps(_encode(text, self._tokenizer))), eos=self._eos)

    def _thoughts(self, reasoning_end: TokenIds) -> tuple[ScriptStep, ...]:
        return (*self._thought, *_steps(reasoning_end)) if reasoning_end else ()

    def scripted(self, script: Script, choice: int) -> Lines:
        if script.choices:
            script = script.choices[choice % len(script.choices)]
        eos = self._eos if script.eos_id is None else TokenIds((script.eos_id,))
        return Lines(script.steps, script.finish, eos, logprobs=script.logprobs)


def _encode(text: str, tokenizer: Tokenizer | None) -> TokenIds:
    return TokenIds(list(text.encode())) if tokenizer is None else tokenizer.encode(text)


def _steps(ids: TokenIds) -> tuple[ScriptStep, ...]:
    return tuple(ScriptStep(TokenIds((id,))) for id in ids)


def _plausible(position: int) -> tuple[float, ...]:
    chosen = 0.55 + 0.4 * ((position * 0.6180339887) % 1)
    rest = math.log(1 - chosen)
    return (math.log(chosen), *(rest - (rank + 1) * math.log(2) for rank in range(64)))


PLAUSIBLE = tuple(_plausible(position) for position in range(64))
"""Log probabilities by position: the chosen id's, then those of ever less likely ones."""
