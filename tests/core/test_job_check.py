"""Which jobs an engine must refuse, from its card alone."""

from __future__ import annotations

import math

import pytest

from tokenwire.core.job_check import needs, refusal
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import (
    Adapter,
    Constraint,
    EngineCard,
    FinishCause,
    FinishKind,
    Handoff,
    JobSampling,
    JobStopping,
    LogprobSettings,
    MediaItem,
    ReasoningBudget,
    TokenJob,
    is_capability,
)

ONE = TokenIds([1])
NEEDING = {
    "n": {"n": 2},
    "logprobs": {"logprobs": LogprobSettings()},
    "prompt_logprobs": {"logprobs": LogprobSettings(prompt=0)},
    "stop_ids": {"stopping": JobStopping(stop_ids=ONE)},
    "stop_sequences": {"stopping": JobStopping(sequences=(ONE,))},
    "logit_bias": {"sampling": JobSampling(logit_bias={1: 1.0})},
    "allowed_ids": {"sampling": JobSampling(allowed_ids=ONE)},
    "penalties": {"sampling": JobSampling(repetition_penalty=1.1)},
    "min_p": {"sampling": JobSampling(min_p=0.1)},
    "handoff": {"handoff": Handoff("r")},
    "resume": {"resume_ids": ONE},
    "reasoning_budget": {"reasoning": ReasoningBudget(budget=0)},
    "adapter": {"adapter": Adapter("a")},
    "grammar:regex": {"constraint": Constraint("regex")},
}
CARD = EngineCard(
    model="m",
    vocab_size=10,
    context_length=5,
    adapters=(Adapter("a"),),
    capabilities=tuple(NEEDING),
)


def job(**fields) -> TokenJob:
    return TokenJob(**({"job": "j", "model": "m", "prompt": ONE} | fields))


@pytest.mark.parametrize("capability", NEEDING)
def test_what_is_not_declared_is_refused_and_what_is_is_not(capability: str) -> None:
    needing = job(**NEEDING[capability])
    assert is_capability(capability)
    assert capability in needs(needing)
    assert refusal(needing, CARD) is None
    fewer = tuple(each for each in CARD.capabilities if each != capability)
    finish = refusal(needing, EngineCard("m", 10, 5, adapters=CARD.adapters, capabilities=fewer))
    assert finish is not None
    assert (finish.kind, finish.cause) == (FinishKind.ERROR, FinishCause.REFUSED)
    assert finish.replay_safe
    assert capability in finish.message


def test_hints_are_no_reason() -> None:
    bare = EngineCard("m", 10, 5)
    hints = job(priority=3, deadline_ms=5, credit=1, sampling=JobSampling(seed=4))
    assert refusal(hints, bare) is None
    assert refusal(job(reasoning=ReasoningBudget(open=True)), bare) is None


@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        ({"prompt": TokenIds()}, "refused"),
        ({"prompt": TokenIds([10])}, "refused"),
        ({"resume_ids": TokenIds([10])}, "refused"),
        ({"reasoning": ReasoningBudget(force_ids=TokenIds([10]))}, "refused"),
        ({"prompt": TokenIds([1] * 5)}, "context_length"),
        ({"n": 0}, "refused"),
        ({"task": "embed"}, "refused"),
        ({"phase": "prefill"}, None),
        ({"adapter": Adapter("b")}, "refused"),
        ({"media": (MediaItem("image", "", 0, 1),)}, "refused"),
        ({"stopping": JobStopping(max_tokens=-1)}, "refused"),
        ({"sampling": JobSampling(temperature=-0.1)}, "refused"),
        ({"sampling": JobSampling(temperature=math.nan)}, "refused"),
        ({"sampling": JobSampling(repetition_penalty=0)}, "refused"),
        ({"sampling": JobSampling(allowed_ids=TokenIds([10, 11]))}, "refused"),
        ({"sampling": JobSampling(repetition_penalty=math.nan)}, "refused"),
        ({"sampling": JobSampling(frequency_penalty=math.inf)}, "refused"),
        ({"sampling": JobSampling(presence_penalty=math.nan)}, "refused"),
        ({"sampling": JobSampling(top_p=math.nan)}, "refused"),
        ({"sampling": JobSampling(top_p=1.5)}, "refused"),
        ({"sampling": JobSampling(min_p=5)}, "refused"),
        ({"sampling": JobSampling(seed=1 << 63)}, "refused"),
        ({"sampling": JobSampling(seed=-(1 << 63))}, None),
        ({"sampling": JobSampling(logit_bias={-1: 5.0})}, "refused"),
        ({"sampling": JobSampling(logit_bias={1: math.nan})}, "refused"),
        ({"sampling": JobSampling(logit_bias={1: -math.inf, 99: 1.0})}, None),
        ({"logprobs": LogprobSettings(ids=TokenIds([10]))}, "refused"),
        ({"logprobs": LogprobSettings(top=-1)}, "refused"),
        ({"logprobs": LogprobSettings(prompt=-1)}, "refused"),
        ({"logprobs": LogprobSettings(top=99, prompt=0, ids=TokenIds([9]))}, None),
        ({"prompt": TokenIds([9] * 4)}, None),
    ],
)
def test_what_is_out_of_range_is_refused(fields: dict[str, object], cause: str | None) -> None:
    finish = refusal(job(**fields), CARD)
    assert (None if finish is None else finish.cause.value) == cause
