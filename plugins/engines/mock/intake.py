"""From a submitted job to its choices, or to the reason why not. Knows no time and no blocks."""

from __future__ import annotations

from typing import final

from tokenwire.core.job_check import refusal, refused
from tokenwire.core.outlet import Outlet
from tokenwire.core.progress import Progress
from tokenwire.core.script import Script
from tokenwire.core.scripts import ScriptBook
from tokenwire.core.token_ids import NO_IDS
from tokenwire.core.tokens import EngineCard, Finish, TokenJob
from tokenwire.plugins.engines.mock.choice import Choice
from tokenwire.plugins.engines.mock.faults import read_faults
from tokenwire.plugins.engines.mock.lines import Lines, Repertoire
from tokenwire.plugins.engines.mock.sequence import JobState, Sequence
from tokenwire.plugins.engines.mock.settings import MockSettings

__all__ = ("Intake",)


@final
class Intake:
    def __init__(
        self,
        settings: MockSettings,
        card: EngineCard,
        repertoire: Repertoire,
        scripts: ScriptBook | None,
    ) -> None:
        self._settings = settings
        self._card = card
        self._repertoire = repertoire
        self._scripts = scripts
        self._order = 0

    def refusal(self, job: TokenJob) -> Finish | None:
        """Why the job cannot be run by this engine, ever; None: it can."""
        finish = refusal(job, self._card)
        if finish is not None:
            return finish
        try:
            read_faults(self._settings, job.annotations)
        except ValueError as error:
            return refused(f"annotations mock.*: {error}")
        if "script" in job.annotations:
            return self._script_refusal(job)
        try:
            self._lines(job)
        except ValueError as error:
            return refused(f"its constraint cannot be kept to: {error}")
        return None

    def take(self, job: TokenJob) -> JobState:
        """The job with its choices; one that is over before it begins has a `finish`."""
        state = JobState(job, read_faults(self._settings, job.annotations))
        for index in range(job.n):
            self._order += 1
            outlet = Outlet(job, index, state.allowance, self._card.credit_cap)
            choice = self._choice(job, index)
            asked = job.logprobs
            if asked is not None and asked.prompt is not None:
                outlet.prompt_logprobs = choice.prompt_logprobs(asked)
            state.sequences.append(Sequence(state, outlet, choice, self._order))
        return state

    def _script(self, job: TokenJob) -> Script | None:
        name = job.annotations.get("script")
        return None if name is None or self._scripts is None else self._scripts.get(name)

    def _script_refusal(self, job: TokenJob) -> Finish | None:
        script = self._script(job)
        if script is None:
            return refused("the script that the job names is not loaded")
        highest = max((token.id for token in script.tokens), default=0)
        if highest >= self._card.vocab_size:
            return refused("a script needs the model's tokenizer to be `script`")
        return None

    def _choice(self, job: TokenJob, index: int) -> Choice:
        card, script = self._card, self._script(job)
        scripted = None if script is None else self._repertoire.scripted(script, index)
        return Choice(
            job,
            scripted or self._lines(job),
            Progress(job, eos_ids=card.eos_ids, context_length=card.context_length),
            likely=self._repertoire.likely,
            vocab_size=card.vocab_size,
        )

    def _lines(self, job: TokenJob) -> Lines:
        """What is said unscripted. Raises ValueError for a constraint beyond this engine."""
        reasoning = job.reasoning
        end = reasoning.end_ids if reasoning is not None and reasoning.open else NO_IDS
        if job.constraint is None:
            return self._repertoire.answer(end)
        return self._repertoire.held(job.constraint, end)
