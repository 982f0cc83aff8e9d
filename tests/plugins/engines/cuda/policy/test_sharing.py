"""Prompts with a common prefix that arrive together: the first computes it, the others wait."""

from __future__ import annotations

import pytest

from tests.plugins.engines.cuda.policy.rig import Rig, answer
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import JobStopping, LogprobSettings, TokenJob
from tokenwire.plugins.engines.cuda.policy.intake import sequence
from tokenwire.plugins.engines.cuda.policy.sequence import Sequence


def computed(rig: Rig) -> int:
    """Tokens that are computed until nothing is left."""
    total = 0
    while not rig.scheduler.is_idle:
        total += rig.step().tokens
    return total


@pytest.mark.parametrize(("length", "waits"), [(31, False), (32, False), (33, True), (60, True)])
def test_siblings_wait_where_enough_is_shared(length: int, waits: bool) -> None:
    rig = Rig(max_batch_tokens=200)
    for _ in range(3):
        rig.add(length, 2)
    assert len(rig.step().rows) == (1 if waits else 3)
    assert len(rig.step().rows) == 3
    hit = (length - 1) // 4 * 4 if waits else 0
    assert [seq.cached_tokens for seq in rig.known] == [0, hit, hit]


def test_samples_of_a_job_compute_their_prompt_once() -> None:
    rig = Rig(max_batch_tokens=200)
    job = TokenJob(job="j", model="m", prompt=TokenIds(range(41)), n=4)
    for choice in range(job.n):
        seq = sequence(job, choice, block_size=4, context_length=43)
        assert rig.scheduler.add(seq) == ""
        rig.known.append(seq)
    assert computed(rig) == 41 + 3 * 1 + 4 * 1


def test_other_jobs_with_the_prefix_wait_too() -> None:
    rig = Rig(max_batch_tokens=200)
    rig.add(40, 1)
    rig.add([*range(36), 7, 7], 1)
    assert computed(rig) == 40 + 2


def test_they_wait_through_all_chunks_of_the_leader() -> None:
    rig = Rig(max_batch_tokens=10)
    first, second = rig.add(41, 2), rig.add(41, 2)
    for _ in range(4):
        assert [row.seq for row in rig.step().rows] == [first]
    rig.step()
    rig.step()
    assert second.cached_tokens == 40


def test_those_who_share_nothing_go_past() -> None:
    rig = Rig(max_batch_tokens=200)
    rig.add(40, 2)
    sibling = rig.add(40, 2)
    other = rig.add([9] * 40, 2)
    assert other in [row.seq for row in rig.step().rows]
    assert not sibling.was_admitted


@pytest.mark.parametrize("how", ["abort", "park", "evict"])
def test_when_the_leader_stops_the_next_takes_over(how: str) -> None:
    rig = Rig(max_batch_tokens=10)
    first, second = rig.add(41, 2), rig.add(41, 2)
    rig.step()
    match how:
        case "abort":
            rig.scheduler.abort(first)
        case "park":
            rig.scheduler.park(first)
        case "evict":
            rig.scheduler.park(first, keep=False)
    assert second in [row.seq for row in rig.step().rows]
    assert second.cached_tokens == 8
    rig.scheduler.unpark(first)
    rig.run()
    assert list(second.tokens[41:]) == answer(range(41), 2)


def test_who_does_not_read_the_cache_does_not_wait() -> None:
    rig = Rig(max_batch_tokens=200)
    rig.add(40, 2)
    rig.add(40, 2, reads_cache=False)
    assert len(rig.step().rows) == 2


def test_what_is_cached_is_not_waited_for() -> None:
    rig = Rig(max_batch_tokens=200)
    rig.add(40, 1)
    rig.run()
    rig.add(40, 2)
    rig.add(40, 2)
    assert len(rig.step().rows) == 2


def test_a_resumed_one_promises_again() -> None:
    rig = Rig(max_batch_tokens=10)
    first, second = rig.add(60, 2), rig.add(60, 2)
    rig.step()
    rig.scheduler.park(first)
    rig.scheduler.unpark(first)
    rows = [rig.step().rows for _ in range(4)]
    assert all([row.seq for row in step] == [first] for step in rows)
    rig.run()
    assert second.cached_tokens == 56


def intake(**fields) -> Sequence:
    job = TokenJob(job="j", model="m", prompt=TokenIds(range(9)), **fields)
    return sequence(job, block_size=4, context_length=30, deadline=101.5)


def test_intake_reads_what_kv_and_order_need() -> None:
    seq = intake(priority=4, expected_tokens=7, resume_ids=TokenIds([1, 2]))
    assert (seq.priority, seq.deadline, seq.expected_tokens) == (4, 101.5, 7)
    assert (seq.max_tokens, seq.prompt_tokens, seq.output_tokens) == (30, 9, 2)
    assert seq.reads_cache


@pytest.mark.parametrize(("most", "wanted"), [(None, 30), (5, 14), (21, 30), (100, 30), (0, 9)])
def test_intake_ends_at_max_tokens_or_the_context(most: int | None, wanted: int) -> None:
    assert intake(stopping=JobStopping(max_tokens=most)).max_tokens == wanted


@pytest.mark.parametrize(("prompt", "reads"), [(None, True), (0, False), (3, False)])
def test_intake_of_prompt_logprobs_reads_no_cache(prompt: int | None, reads: bool) -> None:
    assert intake(logprobs=LogprobSettings(prompt=prompt)).reads_cache == reads
