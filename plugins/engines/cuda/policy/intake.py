"""From a job to its sequences, one a choice. Knows what KV and order depend on, and nothing of
sampling."""

from __future__ import annotations

from tokenwire.core import blocks
from tokenwire.core.tokens import TokenJob
from tokenwire.plugins.engines.cuda.policy.sequence import Sequence

__all__ = ("sequences",)


def sequences(
    job: TokenJob, *, block_size: int, max_model_len: int, now: float, needs_feedback: bool = False
) -> tuple[Sequence, ...]:
    """`now`: by the clock of `Scheduler.schedule`. Where the job sets no max_tokens, the context's
    end is its end. One that embeds or scores has one row that samples, at its prompt's end."""
    prompt = len(job.prompt)
    longest = max_model_len
    if job.stopping.max_tokens is not None:
        longest = min(prompt + job.stopping.max_tokens, max_model_len)
    if job.task != "generate":
        longest = prompt + 1
    asks_prompt = job.logprobs is not None and job.logprobs.prompt is not None
    extras = blocks.extras(job, block_size)
    deadline = None if job.deadline_ms is None else now + job.deadline_ms / 1000
    return tuple(
        Sequence(
            job.job,
            job.prompt,
            max_tokens=longest,
            choice=choice,
            resume=job.resume_ids,
            priority=job.priority,
            deadline=deadline,
            extras=extras,
            pins=job.kv.pins,
            needs_feedback=needs_feedback,
            reads_cache=job.task == "generate" and not asks_prompt,
            expected_tokens=job.expected_tokens,
        )
        for choice in range(job.n)
    )
