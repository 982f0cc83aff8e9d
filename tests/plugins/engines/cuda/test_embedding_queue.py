"""Which embedding jobs go together: priority, size, deadlines, and jobs that are over."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import TokenJob
from tokenwire.plugins.engines.cuda.embedding_queue import EmbeddingQueue, Pending


def pending(name, size, *, priority=0, due=None):
    job = TokenJob(name, "m", TokenIds([1] * size), task="embed", priority=priority)
    return Pending(job, arrived=0.0, due=due, adapter=0)


def names(found):
    return [each.job.job for each in found]


def test_the_urgent_and_the_early_first_and_no_more_than_fit():
    queue = EmbeddingQueue(3, 10)
    for name, size, priority in (("a", 4, 0), ("b", 5, 0), ("c", 2, 9), ("d", 12, 0), ("e", 1, 0)):
        queue.add(pending(name, size, priority=priority))
    assert names(queue.take(0.0)[0]) == ["c", "a"]
    assert names(queue.take(0.0)[0]) == ["b"]
    assert names(queue.take(0.0)[0]) == ["d"], "larger than a pass: alone"
    assert names(queue.take(0.0)[0]) == ["e"]
    assert queue.take(0.0) == ([], [])


def test_the_late_are_told_and_the_ended_passed_by():
    queue = EmbeddingQueue(9, 100)
    late, ended, there = pending("a", 1, due=1.0), pending("b", 1), pending("c", 1, due=9.0)
    for each in (late, ended, there):
        queue.add(each)
    queue.close(ended)
    assert len(queue) == 2
    assert queue.take(1.0) == ([there], [late])


def test_attempts_of_a_job_are_told_apart():
    queue = EmbeddingQueue(9, 100)
    first, second = pending("a", 1), pending("a", 1)
    queue.add(first)
    queue.add(second)
    queue.close(first)
    assert queue.of("a") == (second,)
    queue.close(second)
    assert queue.of("a") == ()
    assert not list(queue.everything())


JOBS = st.lists(st.tuples(st.integers(1, 30), st.integers(0, 2), st.booleans()), max_size=20)


@settings(derandomize=True, max_examples=100, deadline=None)
@given(JOBS, st.integers(1, 5), st.integers(1, 40))
def test_every_job_runs_once_and_no_pass_is_too_large(sizes, texts, tokens):
    queue = EmbeddingQueue(texts, tokens)
    made = [pending(str(k), size, priority=urgency) for k, (size, urgency, _) in enumerate(sizes)]
    for each in made:
        queue.add(each)
    for each, (_, _, is_over) in zip(made, sizes, strict=True):
        if is_over:
            queue.close(each)
    seen = []
    while chosen := queue.take(0.0)[0]:
        assert len(chosen) <= texts
        assert len(chosen) == 1 or sum(len(each.job.prompt) for each in chosen) <= tokens
        seen += chosen
        for each in chosen:
            queue.close(each)
    wanted = [each for each in made if each in seen]
    assert len(seen) == len(wanted) == sum(not is_over for _, _, is_over in sizes)
    assert [each.job.priority for each in seen] == sorted(
        (each.job.priority for each in seen), reverse=True
    )
    assert not len(queue)
