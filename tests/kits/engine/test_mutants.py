"""Broken engines, each caught by the law that it breaks: the mock with one thing done wrong."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterable, Sequence
from itertools import count

import pytest
from msgspec.structs import replace

from tokenwire.core.host import lone_services
from tokenwire.core.ports.engine import Engine
from tokenwire.core.testing.engine_kit import LAWS, run_engine_kit
from tokenwire.core.testing.laws import LawBroken
from tokenwire.core.token_ids import NO_IDS, TokenIds
from tokenwire.core.tokens import (
    Abort,
    AbortReason,
    Control,
    Credit,
    EngineStatus,
    Finish,
    FinishCause,
    FinishKind,
    JobSampling,
    KvEvent,
    TokenDelta,
    TokenJob,
)
from tokenwire.plugins.engines.mock.build import build
from tokenwire.plugins.engines.mock.settings import MockSettings


class Right(Engine):
    """What the mutants are made of: passes everything on."""

    settings = MockSettings(credit_cap=8)

    def __init__(self) -> None:
        self.inner = build(self.settings, lone_services())
        self.jobs: dict[str, TokenJob] = {}
        self.calls = count()
        self.extra: list[TokenDelta] = []

    def job(self, job: TokenJob) -> TokenJob:
        return job

    def frame(self, frame: Control) -> Control | None:
        return frame

    def delta(self, delta: TokenDelta) -> Iterable[TokenDelta]:
        return (delta,)

    def submit(self, jobs: Sequence[TokenJob]) -> None:
        self.jobs.update((job.job, job) for job in jobs)
        self.inner.submit([self.job(job) for job in jobs])

    def control(self, frames: Sequence[Control]) -> None:
        passed = [self.frame(frame) for frame in frames]
        self.inner.control([frame for frame in passed if frame is not None])

    async def batches(self) -> AsyncIterator[tuple[TokenDelta, ...]]:
        async for batch in self.inner.batches():
            extra, self.extra = self.extra, []
            yield (*extra, *(out for delta in batch for out in self.delta(delta)))

    def events(self) -> AsyncIterator[KvEvent]:
        return self.inner.events()

    def status(self) -> EngineStatus:
        return self.inner.status()

    async def drain(self, timeout_s: float) -> None:
        await self.inner.drain(timeout_s)


class FinishesTwice(Right):
    def delta(self, delta):
        return (delta, delta) if delta.finish is not None else (delta,)


class OverlapsItself(Right):
    def delta(self, delta):
        return (replace(delta, at=max(delta.at - 1, 0)),)


class ForgetsCounts(Right):
    def delta(self, delta):
        return (replace(delta, counts=None) if delta.at == 0 else delta,)


class CountsMatchedIds(Right):
    def delta(self, delta):
        if delta.counts is None or delta.finish is None:
            return (delta,)
        counts = replace(delta.counts, generated=delta.counts.generated + 1)
        return (replace(delta, counts=counts),)


class LeavesVocabulary(Right):
    def delta(self, delta):
        return (replace(delta, ids=TokenIds(id + 512 for id in delta.ids)),)


class LogsTheJob(Right):
    def submit(self, jobs):
        logging.getLogger("mutant").debug("got %s", jobs)
        super().submit(jobs)


class OneTooMany(Right):
    def job(self, job):
        limit = job.stopping.max_tokens
        more = None if limit is None else limit + 1
        return replace(job, stopping=replace(job.stopping, max_tokens=more))


class SendsEos(Right):
    def delta(self, delta):
        finish = delta.finish
        if finish is None or finish.cause is not FinishCause.EOS:
            return (delta,)
        return (replace(delta, ids=TokenIds((*delta.ids, *finish.matched))),)


class IgnoresStopIds(Right):
    def job(self, job):
        return replace(job, stopping=replace(job.stopping, stop_ids=NO_IDS))


class SendsHalfASequence(Right):
    def delta(self, delta):
        finish = delta.finish
        if finish is None or finish.cause is not FinishCause.SEQUENCE:
            return (delta,)
        return (replace(delta, ids=TokenIds((*delta.ids, finish.matched[0]))),)


class ForgetsMinTokens(Right):
    def job(self, job):
        return replace(job, stopping=replace(job.stopping, min_tokens=0))


class IgnoresConstraints(Right):
    def job(self, job):
        return replace(job, constraint=None)


class RefusesWithIds(Right):
    def delta(self, delta):
        if delta.finish is None or delta.finish.kind is not FinishKind.ERROR:
            return (delta,)
        return (replace(delta, ids=TokenIds((1,)), finish=None), replace(delta, at=1))


class AbortsForTheClient(Right):
    def frame(self, frame):
        is_abort = isinstance(frame, Abort)
        return replace(frame, reason=AbortReason.CLIENT) if is_abort else frame


class KeepsBlocks(Right):
    def __init__(self):
        super().__init__()
        self.aborted = 0

    def frame(self, frame):
        self.aborted += isinstance(frame, Abort)
        return frame

    def status(self):
        status = super().status()
        return replace(status, kv_blocks_free=status.kv_blocks_free - self.aborted)


class AbortsAllChoices(Right):
    def frame(self, frame):
        return replace(frame, choice=None) if isinstance(frame, Abort) else frame


class AnswersUnknownAborts(Right):
    def frame(self, frame):
        if isinstance(frame, Abort) and frame.job == "no such job":
            finish = Finish(FinishKind.ABORT, FinishCause.CLIENT)
            self.extra.append(TokenDelta(frame.job, finish=finish))
        return frame


class LooksAside(Right):
    """Another id when many run."""

    def delta(self, delta):
        if self.inner.status().running < 20 or not delta.ids:
            return (delta,)
        return (replace(delta, ids=TokenIds(id ^ 1 for id in delta.ids)),)


class SeedsChoicesAlike(Right):
    """An answer that depends on the choice's number, not on its seed."""

    def delta(self, delta):
        return (replace(delta, ids=TokenIds(id ^ delta.choice for id in delta.ids)),)


class GivesCredit(Right):
    def job(self, job):
        return replace(job, credit=None if job.credit else job.credit)


class ForgetsCredit(Right):
    def frame(self, frame):
        return None if isinstance(frame, Credit) and frame.tokens > 1 else frame


class EndsAtTheCap(Right):
    def job(self, job):
        if job.credit != 0 or job.stopping.max_tokens is None:
            return job
        return replace(job, stopping=replace(job.stopping, max_tokens=8))


class AlwaysFree(Right):
    def status(self):
        status = super().status()
        return replace(status, kv_blocks_free=status.kv_blocks_total)


class NeverBusy(Right):
    def status(self):
        return replace(super().status(), running=0, waiting=0)


class SkipsNumbers(Right):
    async def events(self):
        async for event in self.inner.events():
            yield replace(event, seq=event.seq * 2)


class StartsWithoutSnapshot(Right):
    async def events(self):
        events = self.inner.events()
        await anext(events)
        self.submit([TokenJob(job="own", model="", prompt=TokenIds(range(64)))])
        async for event in events:
            yield event


class TakesJobsWhileDraining(Right):
    def delta(self, delta):
        finish = delta.finish
        if finish is not None and finish.cause is FinishCause.REFUSED:
            return (replace(delta, finish=Finish(FinishKind.STOP, FinishCause.EOS)),)
        return (delta,)


class StaysReady(Right):
    def status(self):
        return replace(super().status(), ready=True)


class ScoresOtherIds(Right):
    def delta(self, delta):
        wrong = tuple(replace(entry, id=entry.id + 1) for entry in delta.logprobs)
        return (replace(delta, logprobs=wrong),)


class ScoresAlways(Right):
    def delta(self, delta):
        if not delta.ids or delta.logprobs:
            return (delta,)
        return (replace(delta, logprobs=({"id": 1},)),)


class ScoresNoPrompt(Right):
    def delta(self, delta):
        return (replace(delta, prompt_logprobs=None),)


def without(**plain: object) -> type[Right]:
    """An engine that does not look at a sampling field."""

    class Ignores(Right):
        def job(self, job):
            return replace(job, sampling=replace(job.sampling, **plain))

    return Ignores


def shaken_by(field: str) -> type[Right]:
    """An engine whose answer changes with a sampling field that should not change it."""

    class Shaken(Right):
        def delta(self, delta):
            sampling = self.jobs[delta.job].sampling
            if getattr(sampling, field) == getattr(JobSampling(), field):
                return (delta,)
            return (replace(delta, ids=TokenIds(id ^ 1 for id in delta.ids)),)

    return Shaken


class RollsDice(Right):
    def delta(self, delta):
        if self.jobs[delta.job].sampling.temperature == 0:
            return (delta,)
        return (replace(delta, ids=TokenIds((id + next(self.calls)) % 256 for id in delta.ids)),)


class ForgetsWhatItSaid(Right):
    """Resumed, it starts over, though it numbers its ids as it should."""

    def job(self, job):
        return replace(job, resume_ids=NO_IDS)

    def delta(self, delta):
        return (replace(delta, at=delta.at + len(self.jobs[delta.job].resume_ids)),)


class ThinksOn(Right):
    def job(self, job):
        return replace(job, reasoning=None)


class HidesForcing(Right):
    def delta(self, delta):
        return (replace(delta, forced=False),)


class HasTime(Right):
    def job(self, job):
        return replace(job, deadline_ms=None)


MUTANTS: tuple[tuple[str, type[Right]], ...] = (
    ("deltas_in_order", FinishesTwice),
    ("deltas_in_order", OverlapsItself),
    ("deltas_in_order", ForgetsCounts),
    ("deltas_in_order", CountsMatchedIds),
    ("ids_in_vocabulary", LeavesVocabulary),
    ("logs_ids_only", LogsTheJob),
    ("max_tokens_is_exact", OneTooMany),
    ("stops_at_eos", SendsEos),
    ("stops_at_an_id", IgnoresStopIds),
    ("stops_at_a_sequence", SendsHalfASequence),
    ("min_tokens_are_made", ForgetsMinTokens),
    ("refuses_what_it_cannot", IgnoresConstraints),
    ("refuses_what_it_cannot", RefusesWithIds),
    ("honours_logprobs", ScoresOtherIds),
    ("honours_logprobs", ScoresAlways),
    ("honours_prompt_logprobs", ScoresNoPrompt),
    ("honours_logit_bias", without(logit_bias={})),
    ("honours_allowed_ids", without(allowed_ids=NO_IDS)),
    ("honours_penalties", without(frequency_penalty=0.0, presence_penalty=0.0)),
    ("honours_min_p", shaken_by("min_p")),
    ("honours_top_k", shaken_by("top_k")),
    ("honours_top_k", shaken_by("top_p")),
    ("honours_seed", RollsDice),
    ("honours_resume", ForgetsWhatItSaid),
    ("honours_reasoning_budget", ThinksOn),
    ("honours_reasoning_budget", HidesForcing),
    ("honours_deadline", HasTime),
    ("an_abort_ends", AbortsForTheClient),
    ("an_abort_ends", KeepsBlocks),
    ("an_abort_of_one_choice", AbortsAllChoices),
    ("an_abort_of_nothing", AnswersUnknownAborts),
    ("interleaved_equals_alone", LooksAside),
    ("choices_are_seeded", SeedsChoicesAlike),
    ("credit_is_kept", GivesCredit),
    ("credit_is_kept", ForgetsCredit),
    ("the_cap_holds", EndsAtTheCap),
    ("status_is_true", AlwaysFree),
    ("status_is_true", NeverBusy),
    ("events_add_up", SkipsNumbers),
    ("events_add_up", StartsWithoutSnapshot),
    ("draining_ends", TakesJobsWhileDraining),
    ("draining_ends", StaysReady),
)


def test_what_the_mutants_are_made_of_conforms() -> None:
    run_engine_kit(Right, jobs=30)


class DeclaresNothing(Right):
    def status(self) -> EngineStatus:
        status = super().status()
        return replace(status, card=replace(status.card, capabilities=(), hash_root=""))


def test_laws_of_what_is_not_declared_are_not_said_to_hold() -> None:
    laws = ("max_tokens_is_exact", "honours_seed", "events_add_up", "honours_deadline")
    assert run_engine_kit(DeclaresNothing, laws=laws, jobs=30) == ("max_tokens_is_exact",)


@pytest.mark.parametrize(("law", "mutant"), MUTANTS)
def test_each_mutant_is_caught_by_its_law(law: str, mutant: type[Right]) -> None:
    with pytest.raises(LawBroken) as caught:
        run_engine_kit(mutant, laws=(law,), jobs=30, patience_s=0.5, quiet_s=0.02)
    assert caught.value.port == "engine"
    assert caught.value.law == law


def test_every_law_has_a_mutant() -> None:
    assert {law for law, _ in MUTANTS} == set(LAWS)
