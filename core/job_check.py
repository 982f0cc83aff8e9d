"""Why an engine must refuse a job, from its card alone (engine law 4). Pure; knows no engine.

Hints are never a reason: seed, priority, deadline, credit and expected length may go unheeded.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from tokenwire.core.tokens import (
    EngineCard,
    Finish,
    FinishCause,
    FinishKind,
    JobSampling,
    TokenJob,
)

__all__ = ("needs", "refusal", "refused")

SEEDS = 1 << 63


def refused(
    message: str, cause: FinishCause = FinishCause.REFUSED, *, retryable: bool = False
) -> Finish:
    """The finish of a job that was never begun."""
    return Finish(FinishKind.ERROR, cause, retryable=retryable, replay_safe=True, message=message)


def needs(job: TokenJob) -> Iterator[str]:
    """The capabilities without which the job's answer would be wrong."""
    sampling, stopping = job.sampling, job.stopping
    penalised = (
        sampling.frequency_penalty or sampling.presence_penalty or sampling.repetition_penalty != 1
    )
    asked = (
        ("n", job.n > 1),
        ("logprobs", job.logprobs is not None),
        ("prompt_logprobs", job.logprobs is not None and job.logprobs.prompt is not None),
        ("stop_ids", len(stopping.stop_ids) > 0),
        ("stop_sequences", len(stopping.sequences) > 0),
        ("logit_bias", len(sampling.logit_bias) > 0),
        ("allowed_ids", len(sampling.allowed_ids) > 0),
        ("penalties", bool(penalised)),
        ("min_p", sampling.min_p > 0),
        ("handoff", job.handoff is not None or job.phase != "full"),
        ("resume", len(job.resume_ids) > 0),
        ("reasoning_budget", job.reasoning is not None and job.reasoning.budget is not None),
        ("adapter", job.adapter is not None),
    )
    yield from (name for name, is_asked in asked if is_asked)
    if job.constraint is not None:
        yield f"grammar:{job.constraint.kind}"


def refusal(job: TokenJob, card: EngineCard) -> Finish | None:
    """The finish that every choice of `job` gets; None: the job can be run."""
    for capability in needs(job):
        if not card.can(capability):
            return refused(f"engine of {card.model!r} does not declare {capability!r}")
    if job.task not in card.tasks:
        return refused(f"task {job.task!r} is none of {', '.join(card.tasks)}")
    if job.adapter is not None and job.adapter not in card.adapters:
        return refused(f"adapter {job.adapter.name!r} is not loaded")
    if job.media and card.media is None:
        return refused("the job has media and this engine takes none")
    wrong = _out_of_range(job, card)
    if wrong:
        return refused(wrong)
    if job.task != "generate" and len(job.prompt) > card.context_length:
        return refused(
            f"{len(job.prompt)} prompt tokens, and a context of {card.context_length}",
            FinishCause.CONTEXT_LENGTH,
        )
    if job.task == "generate" and len(job.prompt) >= card.context_length:
        return refused(
            f"{len(job.prompt)} prompt tokens leave no room in a context of {card.context_length}",
            FinishCause.CONTEXT_LENGTH,
        )
    return None


def _out_of_range(job: TokenJob, card: EngineCard) -> str:
    stopping, asked = job.stopping, job.logprobs
    named = (
        ("prompt", job.prompt),
        ("resume_ids", job.resume_ids),
        ("force", job.reasoning.force_ids if job.reasoning is not None else ()),
        ("logprobs", asked.ids if asked is not None else ()),
    )
    for name, ids in named:
        if len(ids) and max(ids) >= card.vocab_size:
            return f"{name} has id {max(ids)}, the vocabulary has {card.vocab_size}"
    if not len(job.prompt):
        return "the prompt is empty"
    if job.n < 1:
        return f"n is {job.n}, wanted 1 or more"
    if stopping.max_tokens is not None and stopping.max_tokens < 0:
        return f"max_tokens is {stopping.max_tokens}, wanted 0 or more"
    if asked is not None and min(asked.top, asked.prompt or 0) < 0:
        return f"logprobs are wanted of {min(asked.top, asked.prompt or 0)} ids, wanted 0 or more"
    return _cannot_draw(job.sampling, card)


def _cannot_draw(sampling: JobSampling, card: EngineCard) -> str:
    """Why no id can be drawn as asked; "": it can. NaN is in no range."""
    if not (math.isfinite(sampling.temperature) and sampling.temperature >= 0):
        return f"temperature is {sampling.temperature}, wanted 0 or more"
    if not (math.isfinite(sampling.repetition_penalty) and sampling.repetition_penalty > 0):
        return f"repetition_penalty is {sampling.repetition_penalty}, wanted more than 0"
    for name in ("top_p", "min_p"):
        if not 0 <= (value := getattr(sampling, name)) <= 1:
            return f"{name} is {value}, wanted 0 to 1"
    for name in ("frequency_penalty", "presence_penalty"):
        if not math.isfinite(value := getattr(sampling, name)):
            return f"{name} is {value}, wanted a number"
    if not -SEEDS <= sampling.seed < SEEDS:
        return f"seed is {sampling.seed}, wanted an int64"
    for id, bias in sampling.logit_bias.items():
        if id < 0 or math.isnan(bias):
            return f"logit_bias of id {id} is {bias}: wanted numbers, of ids from 0 on"
    if len(sampling.allowed_ids) and min(sampling.allowed_ids) >= card.vocab_size:
        return "none of allowed_ids is in the vocabulary"
    return ""
