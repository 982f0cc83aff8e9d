"""The mock as a model: one id far likelier than all others, so that sampling fields mean something.

The expected id has a logit of 30, other words of the answer 0 to 4. So the answer is the same for
every temperature, top_p, min_p and seed, and biases, allowed ids and penalties act as they would on
a very sure model. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tokenwire.core.seeds import splitmix64
from tokenwire.core.tokens import JobSampling

__all__ = ("acts", "choose", "penalises")

SURE = 30.0
SPREAD = 4.0


def acts(sampling: JobSampling) -> bool:
    """Whether these fields can change which id a very sure model chooses."""
    return bool(sampling.logit_bias or len(sampling.allowed_ids) or penalises(sampling))


def penalises(sampling: JobSampling) -> bool:
    """Whether what was said before counts."""
    return bool(
        sampling.frequency_penalty or sampling.presence_penalty or sampling.repetition_penalty != 1
    )


def choose(
    expected: int,
    *,
    sampling: JobSampling,
    likely: Sequence[int],
    vocab_size: int,
    prompt: Collection[int],
    said: Mapping[int, int],
    position: int,
    masked: Collection[int],
) -> int:
    """The likeliest id at output `position`, after bias, penalties and masks.

    `prompt` and `said` (how often each id is in the output) are for penalties alone.
    """
    if not acts(sampling) and expected < vocab_size and expected not in masked:
        return expected
    candidates = {expected, *likely, *sampling.logit_bias}
    if len(sampling.allowed_ids):
        candidates = set(sampling.allowed_ids)
    scores: dict[int, float] = {}
    for id in candidates:
        if id >= vocab_size or id in masked:
            continue
        noise = splitmix64(position << 32 | id) / 2**64 * SPREAD
        score = SURE if id == expected else noise
        if sampling.repetition_penalty != 1 and (id in prompt or id in said):
            score /= sampling.repetition_penalty
        seen = said.get(id, 0)
        score -= sampling.frequency_penalty * seen + sampling.presence_penalty * (seen > 0)
        scores[id] = score + sampling.logit_bias.get(id, 0.0)
    if not scores:
        return expected
    return max(scores, key=lambda id: (scores[id], -id))
