"""The key of an answer: what changes it, what does not, and which calls have none."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tokenwire.core.answers import answer_key
from tokenwire.core.call import Call, Hints, Identity, Output, Sampling, Stopping
from tokenwire.core.dialogue import Dialogue
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import (
    Adapter,
    Constraint,
    Handoff,
    JobSampling,
    JobStopping,
    KvSettings,
    LogprobSettings,
    MediaItem,
    ReasoningBudget,
    TokenJob,
    TraceContext,
)

CALL = Call("m", Dialogue(()), sampling=Sampling(temperature=0.7, seed=3))
JOB = TokenJob("job", "m", TokenIds([1, 2]), sampling=JobSampling(temperature=0.7, seed=3))
PRINT = "f" * 64


def key(job=JOB, call=CALL, fingerprint=PRINT, **more):
    return answer_key(job, call, fingerprint, **more)


def sampling(**fields):
    return replace(JOB, sampling=replace(JOB.sampling, **fields))


def stopping(**fields):
    return replace(JOB, stopping=JobStopping(**fields))


def media(**fields):
    given = {"kind": "image", "sha256": "a", "at": 0, "length": 2, **fields}
    return replace(JOB, media=(MediaItem(**given),))


OTHERS = [
    {"revision": "r2"},
    {"fingerprint": "e" * 64},
    {"job": replace(JOB, model="m2")},
    {"job": replace(JOB, prompt=TokenIds([1, 3]))},
    {"job": replace(JOB, prompt=TokenIds([1, 2, 2]))},
    {"job": sampling(temperature=0.8)},
    {"job": sampling(top_p=0.5)},
    {"job": sampling(top_k=5)},
    {"job": sampling(min_p=0.1)},
    {"job": sampling(frequency_penalty=0.1)},
    {"job": sampling(presence_penalty=0.1)},
    {"job": sampling(repetition_penalty=1.1)},
    {"job": sampling(seed=4)},
    {"job": sampling(logit_bias={1: 2.0})},
    {"job": sampling(allowed_ids=TokenIds([1]))},
    {"job": stopping(max_tokens=5)},
    {"job": stopping(min_tokens=5)},
    {"job": stopping(stop_ids=TokenIds([5]))},
    {"job": stopping(sequences=(TokenIds([5]),))},
    {"job": stopping(ignore_eos=True)},
    {"call": replace(CALL, stopping=Stopping(strings=("a",)))},
    {"call": replace(CALL, stopping=Stopping(strings=("a", "b")))},
    {"job": replace(JOB, reasoning=ReasoningBudget(budget=5))},
    {"job": replace(JOB, constraint=Constraint("regex", "a*"))},
    {"job": replace(JOB, n=2)},
    {"job": replace(JOB, logprobs=LogprobSettings())},
    {"job": replace(JOB, logprobs=LogprobSettings(top=2))},
    {"call": replace(CALL, output=Output(echo=True))},
    {"job": replace(JOB, adapter=Adapter("a"))},
    {"job": replace(JOB, adapter=Adapter("a", "2"))},
    {"job": media()},
    {"job": media(sha256="b")},
    {"job": media(at=1)},
    {"job": replace(JOB, kv=KvSettings(salt="s"))},
    {"call": replace(CALL, identity=Identity(tenant="t"))},
    {"job": replace(JOB, annotations={"script": "hello"})},
]


def test_everything_that_an_answer_depends_on_changes_the_key():
    keys = [key(), *(key(**other) for other in OTHERS)]
    assert None not in keys
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize(
    "same",
    [
        {"job": replace(JOB, job="another", attempt=2)},
        {"job": replace(JOB, priority=5, deadline_ms=10, expected_tokens=3, credit=4)},
        {"job": replace(JOB, trace=TraceContext("00-1-1-01"))},
        {"job": media(ref="x"), "base": media(ref="y")},
        {"call": replace(CALL, output=Output(stream=True, usage=False))},
        {"call": replace(CALL, identity=Identity(user="u", session="s"))},
        {"call": replace(CALL, hints=Hints(priority=3))},
        {"call": replace(CALL, stopping=Stopping(include_stop=True))},
        {
            "job": sampling(logit_bias={1: 2.0, 3: 4.0}),
            "base": sampling(logit_bias={3: 4.0, 1: 2.0}),
        },
    ],
)
def test_what_no_answer_depends_on_does_not(same):
    base = same.pop("base", JOB)
    assert key(**same) == key(job=base)


def test_only_a_seed_that_the_client_sent_makes_sampling_repeat():
    filled_in = replace(CALL, sampling=Sampling(temperature=0.7))
    assert key(call=filled_in) is None
    assert key(call=replace(CALL, sampling=Sampling(temperature=0.7, seed=0))) is not None


def test_greedy_calls_share_whatever_the_seed():
    filled_in = replace(CALL, sampling=Sampling(temperature=0.0))
    keys = {
        key(job=sampling(temperature=0.0, seed=seed), call=call)
        for seed in (3, 4)
        for call in (CALL, filled_in)
    }
    assert len(keys) == 1
    assert None not in keys


@pytest.mark.parametrize(
    "job",
    [
        replace(JOB, resume_ids=TokenIds([9])),
        replace(JOB, phase="prefill"),
        replace(JOB, handoff=Handoff("room")),
        replace(JOB, task="embed"),
    ],
)
def test_a_part_of_an_answer_has_no_key(job):
    assert key(job=job) is None


def test_the_key_is_the_same_on_every_machine():
    assert key() == "052b19922e95a003cb9c98fded10d253c6b3e9b00487d77ba2d73cf64526e253"
