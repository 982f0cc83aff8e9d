"""From a job to the sequence of one of its choices. Knows what KV and order depend on, and nothing
of sampling."""

from __future__ import annotations

from tokenwire.core import blocks
from tokenwire.core.tokens import TokenJob
from tokenwire.plugins.engines.cuda.policy.sequence import Sequence

__all__ = ("sequence",)


def sequence(
    job: TokenJob,
    choice: int = 0,
    *,
    block_size: int,
    context_length: int,
    deadline: float | None = None,
    needs_feedback: bool = False,
    reads_cache: bool = True,
    owner: object = None,
) -> Sequence:
    """`deadline`: by the clock of `Scheduler.schedule`. Where the job sets no max_tokens, the
    context's end is its end."""
    longest = context_length
    if job.stopping.max_tokens is not None:
        longest = min(len(job.prompt) + job.stopping.max_tokens, context_length)
    # Why: every prompt token's hidden state is wanted, and the cache holds none.
    asks_prompt = job.logprobs is not None and job.logprobs.prompt is not None
    return Sequence(
        job.job,
        job.prompt,
        max_tokens=longest,
        choice=choice,
        resume=job.resume_ids,
        priority=job.priority,
        deadline=deadline,
        extras=blocks.extras(job, block_size),
        pins=job.kv.pins,
        needs_feedback=needs_feedback,
        reads_cache=reads_cache and not asks_prompt,
        expected_tokens=job.expected_tokens,
        owner=owner,
    )
