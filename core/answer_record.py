"""A whole answer as bytes: token ids and what came with them, never text. Pure; knows no store.

The deltas of an answer are joined into few (at most JOIN ids each), with no job and no attempt.
Their counts tell the truth about a replay: prompt and generated as they were, all of the prompt
`cached`, nothing `computed`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tokenwire.core.token_codec import decode_msgpack, encode_msgpack
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import Counts, Finish, FinishCause, FinishKind, IdLogprobs, TokenDelta

__all__ = ("Answer", "condense", "pack", "relabel", "stopped", "unpack")

RECORD_VERSION = 1

JOIN = 256
"""Ids of one joined delta: few enough that playing it does not hold up other calls."""

Answer = tuple[TokenDelta, ...]


class _Record(Struct, frozen=True):
    version: int
    deltas: Answer


def pack(answer: Answer) -> bytes:
    return encode_msgpack(_Record(RECORD_VERSION, answer))


def unpack(data: bytes) -> Answer | None:
    """None for what another version, or nobody, wrote."""
    try:
        record = decode_msgpack(data, _Record)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return record.deltas if record.version == RECORD_VERSION else None


def relabel(answer: Answer, job: str, *, attempt: int = 0) -> Answer:
    """The answer as if `job` had produced it."""
    return tuple(replace(delta, job=job, attempt=attempt) for delta in answer)


def condense(deltas: Iterable[TokenDelta], n: int) -> Answer | None:
    """The deltas of a job, in the order in which they were accepted, as an answer to keep. None
    unless all `n` choices are there without a gap and ended well."""
    choices: dict[int, list[TokenDelta]] = {}
    for delta in deltas:
        choices.setdefault(delta.choice, []).append(delta)
    if sorted(choices) != list(range(n)):
        return None
    runs: list[TokenDelta] = []
    for own in choices.values():
        if not _is_whole(own):
            return None
        runs += _recount(_join(own))
    return tuple(sorted(runs, key=lambda delta: (delta.at, delta.choice)))


def _is_whole(deltas: list[TokenDelta]) -> bool:
    held = 0
    for delta in deltas:
        if delta.at != held or delta.handoff is not None:
            return False
        held += len(delta.ids)
    *before, last = (delta.finish for delta in deltas)
    return last is not None and _ended_well(last) and not any(before)


def _ended_well(finish: Finish) -> bool:
    """Stop and length. A stop string ends the engine's work by abort(stop_text), and the answer by
    stop: it is the same string that ends the replay, because stop strings are part of the key."""
    if finish.kind is FinishKind.ABORT:
        return finish.cause is FinishCause.STOP_TEXT
    return finish.kind in (FinishKind.STOP, FinishKind.LENGTH)


def _join(deltas: list[TokenDelta]) -> list[TokenDelta]:
    runs: list[list[TokenDelta]] = []
    size, kind = 0, None
    for delta in deltas:
        # Why: log probabilities stand one to one with ids, or not at all.
        own = (delta.forced, bool(delta.logprobs)) if delta.ids else kind
        is_special = delta.prompt_logprobs is not None or delta.vectors or delta.scores
        size += len(delta.ids)
        if not runs or is_special or size > JOIN or (own != kind and kind is not None):
            runs.append([])
            size = len(delta.ids)
        runs[-1].append(delta)
        kind = own
    return [_joined(run) for run in runs]


def _joined(run: list[TokenDelta]) -> TokenDelta:
    ids = TokenIds()
    logprobs: list[IdLogprobs] = []
    for delta in run:
        ids.extend(delta.ids)
        logprobs += delta.logprobs
    told = [delta.counts for delta in run if delta.counts is not None]
    return replace(
        run[0],
        job="",
        attempt=0,
        ids=ids,
        logprobs=tuple(logprobs),
        forced=any(delta.forced for delta in run if delta.ids),
        counts=told[-1] if told else None,
        finish=run[-1].finish,
    )


def _recount(runs: list[TokenDelta]) -> list[TokenDelta]:
    """Counts on the first run and on the last, as of a replay."""
    told = [delta.counts for delta in runs if delta.counts is not None]
    prompt = max((counts.prompt for counts in told), default=0)
    generated = sum(len(delta.ids) for delta in runs)
    if told and runs[-1].counts is not None:
        generated = runs[-1].counts.generated
    counts = Counts(prompt=prompt, cached=prompt, computed=0, generated=generated)
    bare = [replace(delta, counts=None) for delta in runs]
    bare[0] = replace(bare[0], counts=replace(counts, generated=len(bare[0].ids)))
    bare[-1] = replace(bare[-1], counts=counts)
    return bare


def stopped(record: Sequence[TokenDelta], choices: Sequence[int]) -> list[TokenDelta]:
    """The ends of choices that the gateway ended (a stop string): the engine was told to stop, and
    its own last delta, which may not have come yet, is not waited for."""
    lasts = {delta.choice: delta for delta in record}
    finish = Finish(FinishKind.ABORT, FinishCause.STOP_TEXT)
    return [
        TokenDelta(last.job, last.at + len(last.ids), choice=choice, finish=finish)
        for choice in choices
        if (last := lasts[choice]).finish is None
    ]
