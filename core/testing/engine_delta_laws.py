"""Laws 1 to 4 of the engine port: what deltas say, when a choice stops, what is refused."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

from msgspec.structs import replace

from tokenwire.core.testing.engine_probe import Answer, EngineProbe
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import (
    Adapter,
    Constraint,
    FinishKind,
    Handoff,
    JobSampling,
    JobStopping,
    KvSettings,
    LogprobSettings,
    ReasoningBudget,
    TokenJob,
    TraceContext,
)

__all__ = ("DELTAS", "Law")

Law: TypeAlias = Callable[[EngineProbe], Coroutine[Any, Any, None]]
SECRET = "the words of a client"


async def deltas_in_order(probe: EngineProbe) -> None:
    """Law 1: no gap, no overlap, one finish, on the last; counts on the first and last."""
    jobs = [probe.job(prompt=prompt) for prompt in probe.prompts]
    if probe.needs("n"):
        jobs.append(probe.job(n=3))
    answers = await probe.run(*jobs)
    if probe.needs("resume"):
        whole = answers[0].ids
        resumed = await probe.run_one(prompt=probe.prompts[0], resume_ids=TokenIds(whole[:2]))
        probe.equal("a resumed job's first `at`", resumed.deltas[0].at, len(whole[:2]))
        answers.append(resumed)
    await probe.rest()
    probe.equal("deltas of unknown jobs", probe.strays, [])
    for answer in answers:
        probe.ended_well(answer)
        _check_order(probe, answer)


def _check_order(probe: EngineProbe, answer: Answer) -> None:
    name = f"job {answer.job.job}, choice {answer.choice}"
    at = len(answer.job.resume_ids)
    for index, delta in enumerate(answer.deltas):
        is_last = index == len(answer.deltas) - 1
        probe.equal(f"{name}, delta {index}: attempt", delta.attempt, answer.job.attempt)
        probe.equal(f"{name}, delta {index}: at", delta.at, at)
        at += len(delta.ids)
        probe.equal(f"{name}, delta {index} has the finish", delta.finish is not None, is_last)
        if index == 0 or is_last:
            probe.true(f"{name}, delta {index}: no counts", delta.counts is not None)
    counts = answer.deltas[-1].counts
    assert counts is not None
    probe.equal(f"{name}: counts.generated", counts.generated, at)
    probe.equal(f"{name}: counts.prompt", counts.prompt, len(answer.job.prompt))
    probe.equal(f"{name}: cached + computed", counts.cached + counts.computed, counts.prompt)


async def ids_in_vocabulary(probe: EngineProbe) -> None:
    """Law 2: every id is below the vocabulary's size, matched ones too, hot sampling or not."""
    hot = JobSampling(temperature=5.0, seed=7)
    jobs = [probe.job(prompt=prompt, sampling=hot) for prompt in probe.prompts]
    answers = await probe.run(probe.job(stopping=JobStopping(max_tokens=probe.tokens)), *jobs)
    for answer in answers:
        probe.ended_well(answer)
        matched = answer.finish.matched if answer.finish is not None else ()
        for id in (*answer.ids, *matched):
            probe.true(f"id {id}, vocabulary {probe.card.vocab_size}", id < probe.card.vocab_size)


class _Collector(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


async def logs_ids_only(probe: EngineProbe) -> None:
    """Law 2: whatever text a job carries (names, salts, grammars), no log line shows it."""
    texts = {
        "annotations": {"note": SECRET},
        "kv": KvSettings(salt=SECRET),
        "trace": TraceContext(traceparent=SECRET),
    }
    refused = probe.job(constraint=Constraint(kind="no such kind", text=SECRET))
    collector, root = _Collector(), logging.getLogger()
    level = root.level
    root.addHandler(collector)
    root.setLevel(logging.DEBUG)
    try:
        await probe.run(probe.job(**texts), refused)
    finally:
        root.removeHandler(collector)
        root.setLevel(level)
    for line in collector.lines:
        probe.true(f"logged: {line!r}", SECRET not in line)


async def max_tokens_is_exact(probe: EngineProbe) -> None:
    """Law 3: with eos ignored, exactly max_tokens ids come, then length(max)."""
    for limit in (1, 2, probe.tokens):
        answer = await probe.run_one(stopping=JobStopping(max_tokens=limit, ignore_eos=True))
        probe.equal(f"ids with max_tokens {limit}", len(answer.ids), limit)
        probe.equal(f"finish with max_tokens {limit}", answer.why(), ("length", "max"))


async def stops_at_an_id(probe: EngineProbe) -> None:
    """Law 3: a stop id ends the choice, is in `matched` alone, and counts towards max_tokens."""
    if not probe.needs("stop_ids"):
        return probe.skip()
    plain = (await probe.run_one()).ids
    place = _fresh_place(plain, 1)
    stop = TokenIds((plain[place],))
    for limit in (place + 1, probe.tokens):
        stopping = JobStopping(max_tokens=limit, ignore_eos=True, stop_ids=stop)
        answer = await probe.run_one(stopping=stopping)
        _check_stop(probe, answer, plain[:place], list(stop), "id")


async def stops_at_a_sequence(probe: EngineProbe) -> None:
    """Law 3: a stop sequence ends the choice; no part of it is delivered; near misses are."""
    if not probe.needs("stop_sequences"):
        return probe.skip()
    plain = (await probe.run_one()).ids
    place = _fresh_place(plain, 2)
    sequence = TokenIds(plain[place : place + 2])
    other = next(id for id in range(probe.card.vocab_size) if id not in plain)
    near = TokenIds((plain[place], other))
    stopping = JobStopping(max_tokens=probe.tokens, ignore_eos=True, sequences=(near, sequence))
    answer = await probe.run_one(stopping=stopping)
    _check_stop(probe, answer, plain[:place], list(sequence), "sequence")
    missed = await probe.run_one(stopping=replace(stopping, sequences=(near,)))
    probe.equal("ids where only a prefix of a sequence came", missed.ids, plain)


def _fresh_place(ids: list[int], length: int) -> int:
    """Where ids stand that did not come before, `length` of them within what there is."""
    places = [at for at in range(1, len(ids) - length + 1) if ids[at] not in ids[:at]]
    return places[0] if places else 0


def _check_stop(
    probe: EngineProbe, answer: Answer, before: list[int], matched: list[int], cause: str
) -> None:
    probe.equal("finish", answer.why(), ("stop", cause))
    probe.equal("delivered ids", answer.ids, before)
    assert answer.finish is not None
    probe.equal("matched ids", list(answer.finish.matched), matched)
    counts = answer.deltas[-1].counts
    probe.equal("counts.generated", counts.generated if counts else None, len(before))


async def min_tokens_are_made(probe: EngineProbe) -> None:
    """Law 3: before min_tokens, stop ids are not chosen and end nothing."""
    if not probe.needs("stop_ids"):
        return probe.skip()
    least = max(probe.tokens // 2, 2)
    stop = TokenIds(((await probe.run_one()).ids[0],))
    stopping = JobStopping(max_tokens=probe.tokens, min_tokens=least, stop_ids=stop)
    answer = await probe.run_one(stopping=stopping)
    probe.ended_well(answer)
    probe.true(f"{len(answer.ids)} ids, min_tokens {least}", len(answer.ids) >= least)
    if probe.card.eos_ids or probe.needs("logit_bias"):
        probe.true(
            "a stop id among the first ids",
            not {*stop, *probe.card.eos_ids} & {*answer.ids[:least]},
        )


async def refuses_what_it_cannot(probe: EngineProbe) -> None:
    """Law 4: what the card does not declare, what is too long or no id, is one error finish a
    choice; another job does not notice."""
    alone = await probe.run_one()
    good = probe.job()
    bad = _impossible(probe)
    answers = await probe.run(
        *(job for _, job, _ in bad[::2]), good, *(job for _, job, _ in bad[1::2])
    )
    by_name: dict[str, list[Answer]] = {}
    for answer in answers:
        by_name.setdefault(answer.job.job, []).append(answer)
    await probe.rest()
    for what, job, cause in bad:
        for answer in by_name[job.job]:
            probe.equal(f"{what}: deltas", len(answer.deltas), 1)
            kind, got = answer.why()
            probe.equal(f"{what}: finish", kind, "error")
            probe.equal(f"{what}: ids", answer.ids, [])
            if cause:
                probe.equal(f"{what}: cause", got, cause)
    probe.equal("a good job among refused ones", by_name[good.job][0].ids, alone.ids)


def _impossible(probe: EngineProbe) -> list[tuple[str, TokenJob, str]]:
    """(what, job, cause) that this engine must refuse."""
    card, stopping = probe.card, JobStopping(max_tokens=2)
    id = probe.prompts[0][0]
    long = TokenIds([id]) * card.context_length
    needing: dict[str, dict[str, Any]] = {
        "n": {"n": 2},
        "logprobs": {"logprobs": LogprobSettings()},
        "prompt_logprobs": {"logprobs": LogprobSettings(prompt=1)},
        "stop_ids": {"stopping": replace(stopping, stop_ids=TokenIds((id,)))},
        "stop_sequences": {"stopping": replace(stopping, sequences=(TokenIds((id, id)),))},
        "logit_bias": {"sampling": JobSampling(logit_bias={id: 1.0})},
        "allowed_ids": {"sampling": JobSampling(allowed_ids=TokenIds((id,)))},
        "penalties": {"sampling": JobSampling(frequency_penalty=1.0)},
        "min_p": {"sampling": JobSampling(min_p=0.5)},
        "handoff": {"handoff": Handoff(room="r"), "phase": "prefill"},
        "resume": {"resume_ids": TokenIds((id,))},
        "reasoning_budget": {"reasoning": ReasoningBudget(open=True, budget=1)},
        "adapter": {"adapter": Adapter("a", "1")},
    }
    jobs = [
        (f"undeclared {name}", probe.job(**fields), "refused")
        for name, fields in needing.items()
        if not card.can(name)
    ]
    unknown = Constraint(kind="no such kind", text="x")
    embeds = () if "embed" in card.tasks else (("task embed", probe.job(task="embed"), ""),)
    return [
        *jobs,
        *embeds,
        ("an unknown constraint", probe.job(constraint=unknown), "refused"),
        ("a prompt beyond the context", probe.job(prompt=TokenIds(long)), "context_length"),
        ("an id beyond the vocabulary", probe.job(prompt=TokenIds((id, card.vocab_size))), ""),
        ("an empty prompt", probe.job(prompt=TokenIds()), ""),
        ("an unknown adapter", probe.job(adapter=Adapter("no such adapter")), "refused"),
    ]


async def stops_at_eos(probe: EngineProbe) -> None:
    """Law 3: eos ends the choice with stop(eos), in `matched` alone, counted in max_tokens."""
    if not (probe.card.eos_ids and probe.needs("logit_bias")):
        return probe.skip()
    eos = probe.card.eos_ids[0]
    sampling = JobSampling(temperature=0.0, logit_bias={eos: 1000.0})
    for limit in (1, probe.tokens):
        answer = await probe.run_one(sampling=sampling, stopping=JobStopping(max_tokens=limit))
        _check_stop(probe, answer, [], [eos], "eos")
        probe.true("an error", answer.finish is None or answer.finish.kind is not FinishKind.ERROR)


DELTAS: tuple[Law, ...] = (
    deltas_in_order,
    ids_in_vocabulary,
    logs_ids_only,
    max_tokens_is_exact,
    stops_at_eos,
    stops_at_an_id,
    stops_at_a_sequence,
    min_tokens_are_made,
    refuses_what_it_cannot,
)
