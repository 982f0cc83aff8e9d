"""When two calls must have the same answer: a digest of all that it depends on. Knows no store."""

from __future__ import annotations

from hashlib import sha256

from msgspec import Struct

from tokenwire.core.call import Call
from tokenwire.core.token_codec import encode_msgpack
from tokenwire.core.token_ids import NO_IDS, TokenIds
from tokenwire.core.tokens import (
    Adapter,
    Constraint,
    JobSampling,
    JobStopping,
    LogprobSettings,
    ReasoningBudget,
    TokenJob,
)

__all__ = ("answer_key",)

KEY_VERSION = 1


class _Sampling(Struct, frozen=True):
    """JobSampling with the bias in one order, and the seed only where it counts."""

    numbers: tuple[float, ...]
    top_k: int
    seed: int | None
    logit_bias: tuple[tuple[int, float], ...]
    allowed_ids: TokenIds


class _Media(Struct, frozen=True):
    kind: str
    sha256: str
    at: int
    length: int
    size: tuple[int, ...]


class _Question(Struct, frozen=True):
    """Everything that an answer depends on; the digest is over its msgpack map."""

    version: int
    model: str
    revision: str
    fingerprint: str
    prompt: TokenIds
    sampling: _Sampling
    stopping: JobStopping
    strings: tuple[str, ...]
    reasoning: ReasoningBudget | None
    constraint: Constraint | None
    n: int
    logprobs: LogprobSettings | None
    echo: bool
    adapter: Adapter | None
    media: tuple[_Media, ...]
    salt: str
    tenant: str
    annotations: tuple[tuple[str, str], ...]
    """They reach the engine: the mock plays the script that they name."""


def answer_key(job: TokenJob, call: Call, fingerprint: str, *, revision: str = "") -> str | None:
    """sha256 hex, or None for a call whose answer may differ from run to run.

    Deterministic is what samples greedily (temperature 0) or with a seed that the client sent; the
    seed that the gateway filled in does not count, and with temperature 0 no seed enters the key.
    A job that resumes, or that is one leg of several, has no key: its deltas are no whole answer.
    `fingerprint` is the prompt's (template, tokenizer and model revision), `revision` the engine's.
    """
    is_whole = job.task == "generate" and job.phase == "full" and job.handoff is None
    is_greedy = job.sampling.temperature == 0
    if not is_whole or job.resume_ids != NO_IDS:
        return None
    if not is_greedy and call.sampling.seed is None:
        return None
    question = _Question(
        version=KEY_VERSION,
        model=job.model,
        revision=revision,
        fingerprint=fingerprint,
        prompt=job.prompt,
        sampling=_sampling(job.sampling, None if is_greedy else job.sampling.seed),
        stopping=job.stopping,
        strings=call.stopping.strings,
        reasoning=job.reasoning,
        constraint=job.constraint,
        n=job.n,
        logprobs=job.logprobs,
        echo=call.output.echo,
        adapter=job.adapter,
        media=tuple(
            _Media(item.kind, item.sha256, item.at, item.length, item.size) for item in job.media
        ),
        salt=job.kv.salt,
        tenant=call.identity.tenant,
        annotations=tuple(sorted(job.annotations.items())),
    )
    return sha256(b"answer\0" + encode_msgpack(question)).hexdigest()


def _sampling(sampling: JobSampling, seed: int | None) -> _Sampling:
    return _Sampling(
        numbers=(
            float(sampling.temperature),
            float(sampling.top_p),
            float(sampling.min_p),
            float(sampling.frequency_penalty),
            float(sampling.presence_penalty),
            float(sampling.repetition_penalty),
        ),
        top_k=sampling.top_k,
        seed=seed,
        logit_bias=tuple(sorted((id_, float(bias)) for id_, bias in sampling.logit_bias.items())),
        allowed_ids=sampling.allowed_ids,
    )
