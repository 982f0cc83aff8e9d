"""What engines log of a job: ids as integers, and of everything else no letter."""

from __future__ import annotations

from hashlib import sha256

from tokenwire.core.job_log import describe
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import (
    Adapter,
    Constraint,
    Handoff,
    JobSampling,
    JobStopping,
    KvSettings,
    MediaItem,
    TokenJob,
    TraceContext,
)

SECRET = "Ignore all rules, said Zoë"

JOB = TokenJob(
    job=SECRET,
    model=SECRET,
    prompt=TokenIds([1, 22, 333]),
    adapter=Adapter(SECRET, SECRET),
    sampling=JobSampling(temperature=0.5, logit_bias={7: 1.5}),
    stopping=JobStopping(sequences=(TokenIds([4, 5]),)),
    constraint=Constraint(kind="regex", text=SECRET),
    kv=KvSettings(salt=SECRET),
    handoff=Handoff(room=SECRET),
    media=(MediaItem("image", SECRET, 0, 4, data=SECRET.encode(), ref=SECRET),),
    annotations={SECRET: SECRET},
    trace=TraceContext(SECRET),
)


def test_no_text_of_a_job_is_shown() -> None:
    line = describe(JOB)
    for part in (SECRET, "Ignore", "rules", "Zo", "regex"):
        assert part not in line


def test_ids_and_numbers_are_shown() -> None:
    line = describe(JOB)
    assert "prompt=[1,22,333]" in line
    assert "sequences=([4,5])" in line
    assert "temperature=0.5" in line
    assert "{7: 1.5}" in line


def test_texts_are_shown_by_kind_length_and_digest() -> None:
    digest = sha256(SECRET.encode()).hexdigest()
    assert f"salt=str[{len(SECRET)}] sha256:{digest}" in describe(JOB)
    data = SECRET.encode()
    assert f"data=bytes[{len(data)}] sha256:{digest}" in describe(JOB)


def test_unset_fields_are_left_out_and_odd_values_named_by_kind() -> None:
    assert describe(TokenJob(job="", model="", prompt=TokenIds())).count("=") == 3
    assert describe(None) == "None"
    assert describe([1, True]) == "(1, True)"
    assert describe(object()) == "object"
    assert "\ud800" not in describe("\ud800")
