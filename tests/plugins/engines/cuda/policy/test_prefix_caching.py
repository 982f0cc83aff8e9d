"""What is cached, who finds it, and when it goes; with one group that sees all keys."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.plugins.engines.cuda.policy.rig import ROOT, SIZE, Rig, answer
from tokenwire.core import blocks
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import Adapter, BlockStored, KvPin, KvSettings, MediaItem, TokenJob
from tokenwire.plugins.engines.cuda.policy.intake import sequence


def names(ids: list[int]) -> set[str]:
    return {name.hex() for name in blocks.chain(ROOT, TokenIds(ids), SIZE)}


@pytest.mark.parametrize(
    ("length", "hit"),
    [(1, 0), (3, 0), (4, 0), (5, 4), (7, 4), (8, 4), (9, 8), (12, 8), (13, 12), (16, 12), (17, 16)],
)
def test_a_second_prompt_hits_and_the_last_token_is_always_computed(length: int, hit: int) -> None:
    rig = Rig()
    rig.add(length, 1)
    rig.run()
    again = rig.add(length, 1)
    plan = rig.step()
    assert again.cached_tokens == hit
    assert [(row.start, row.count) for row in plan.rows] == [(hit, length - hit)]


@pytest.mark.parametrize(("shared", "hit"), [(0, 0), (3, 0), (4, 4), (6, 4), (8, 8), (11, 8)])
def test_a_partial_hit_is_whole_blocks(shared: int, hit: int) -> None:
    rig = Rig()
    rig.add(12, 1)
    rig.run()
    other = rig.add([*range(shared), *([77] * (12 - shared))], 1)
    rig.step()
    assert other.cached_tokens == hit


@pytest.mark.parametrize("output", [1, 2, 3, 4, 5, 9])
def test_blocks_that_decoding_fills_are_found(output: int) -> None:
    rig = Rig()
    first = rig.add(6, output)
    rig.run()
    turn = rig.add([*first.tokens, 50, 51, 52], 1)
    rig.step()
    # Why less one: the last id was sampled and never computed.
    assert turn.cached_tokens == (6 + output - 1) // SIZE * SIZE


def test_a_block_has_its_name_only_when_its_step_has_retired() -> None:
    rig = Rig()
    rig.add(8, 1)
    rig.schedule()
    assert rig.kv.pools[0].names() == ()
    rig.retire()
    assert rig.events == names(list(range(8)))


def test_a_block_that_is_not_full_has_no_name() -> None:
    rig = Rig()
    rig.add(7, 1)
    rig.run()
    assert rig.events == names(list(range(4)))


def test_running_sequences_share_blocks() -> None:
    rig = Rig()
    first = rig.add(9, 4)
    rig.step()
    second = rig.add(9, 4)
    rig.step()
    assert first.tables[0][:2] == second.tables[0][:2]
    assert first.tables[0][2] != second.tables[0][2]
    assert [rig.kv.pools[0].refs[block] for block in first.tables[0]] == [2, 2, 1]


def test_the_tail_is_never_shared() -> None:
    rig = Rig()
    for _ in range(3):
        rig.add(10, 6)
        rig.step()
    tails = [seq.tables[0][-1] for seq in rig.known]
    assert len(set(tails)) == 3


def test_a_recomputed_last_block_is_a_twin() -> None:
    rig = Rig()
    rig.add(8, 4)
    rig.step()
    rig.add(8, 4)
    rig.step()
    pool = rig.kv.pools[0]
    tables = [seq.tables[0] for seq in rig.known]
    assert tables[0][1] != tables[1][1]
    assert pool.name_of(tables[0][1]) == pool.name_of(tables[1][1])
    assert len(rig.events) == 2


def test_a_hit_is_not_evicted_by_its_own_allocation() -> None:
    rig = Rig(4)
    rig.add(8, 1)
    rig.run()
    again = rig.add([*range(8), *range(50, 57)], 2)
    rig.step()
    assert again.cached_tokens == 8
    assert len(set(again.tables[0])) == 4


def test_a_hit_that_leaves_no_room_for_the_rest_waits() -> None:
    rig = Rig(4)
    rig.add(8, 1)
    rig.run()
    holder = rig.add(range(60, 69), 3)
    rig.step()
    again = rig.add([*range(8), 50], 1)
    rig.step()
    assert holder.tables
    assert not again.tables
    rig.run()
    assert again.output_tokens == 1


def test_old_content_is_not_found_under_a_reused_block() -> None:
    rig = Rig(3)
    rig.add(9, 1)
    rig.run()
    rig.add(range(40, 49), 1)
    rig.run()
    again = rig.add(9, 1)
    rig.step()
    assert again.cached_tokens == 0
    assert list(again.tokens[9:]) == answer(range(9), 1)


def test_the_oldest_chain_goes_first_and_its_tail_before_its_head() -> None:
    rig = Rig(6)
    rig.add(8, 1)
    rig.run()
    rig.add(range(40, 48), 1)
    rig.run()
    rig.add(range(80, 91), 1)
    rig.run()
    assert rig.events >= names(list(range(4))) | names(list(range(40, 48)))
    assert not names(list(range(8))) <= rig.events


def test_use_makes_a_chain_young_again() -> None:
    rig = Rig(6)
    rig.add(9, 1)
    rig.run()
    rig.add(range(40, 48), 1)
    rig.run()
    rig.add(9, 1)
    rig.run()
    rig.add(range(80, 95), 1)
    rig.run()
    assert names(list(range(8))) <= rig.events
    assert not names(list(range(40, 48))) <= rig.events


@pytest.mark.parametrize(
    ("one", "two", "hit"),
    [
        (b"", b"", 8),
        (b"salt:a", b"salt:a", 8),
        (b"salt:a", b"salt:b", 0),
        (b"", b"salt:a", 0),
        (b"adapter:x@1", b"adapter:x@2", 0),
        (b"adapter:x@1", b"salt:a", 0),
    ],
)
def test_salt_and_adapter_divide_the_cache(one: bytes, two: bytes, hit: int) -> None:
    rig = Rig()
    rig.add(9, 1, extras=(one,))
    rig.run()
    other = rig.add(9, 1, extras=(two,))
    rig.step()
    assert other.cached_tokens == hit


@pytest.mark.parametrize(
    ("one", "two", "hit"),
    [(("a", 4), ("a", 4), 8), (("a", 4), ("b", 4), 4), (("a", 4), ("a", 5), 4)],
)
def test_pictures_divide_the_cache_from_their_block_on(one, two, hit: int) -> None:
    rig = Rig()
    found = []
    for sha, at in (one, two):
        media = (MediaItem("image", sha, at=at, length=3),)
        job = TokenJob(job="j", model="m", prompt=TokenIds(range(9)), media=media)
        seq = sequence(job, block_size=SIZE, context_length=10)
        assert rig.scheduler.add(seq) == ""
        rig.known.append(seq)
        rig.run()
        found.append(seq.cached_tokens)
    assert found == [0, hit]


def test_a_sequence_that_does_not_read_the_cache_still_fills_it() -> None:
    rig = Rig()
    for reads, hit in ((False, 0), (False, 0), (True, 8)):
        seq = rig.add(9, 1, reads_cache=reads)
        rig.run()
        assert seq.cached_tokens == hit


def test_counters_of_queries_and_hits() -> None:
    rig = Rig()
    for _ in range(3):
        rig.add(9, 1)
        rig.run()
    status = rig.scheduler.status()
    assert (status.query_tokens, status.hit_tokens) == (27, 16)


def test_a_preempted_sequence_is_counted_once_and_resumes_by_its_own_blocks() -> None:
    rig = Rig()
    seq = rig.add(9, 6)
    rig.step()
    rig.scheduler.park(seq, keep=False)
    rig.scheduler.unpark(seq)
    plan = rig.step()
    assert plan.rows[0].start == 8
    assert seq.cached_tokens == 0
    assert rig.scheduler.status().query_tokens == 9


def test_resumed_output_counts_as_output_and_is_not_cached_prompt() -> None:
    rig = Rig()
    first = rig.add(6, 7)
    rig.run()
    again = rig.add(6, 2, resume=list(first.tokens[6:]))
    rig.step()
    assert again.cached_tokens == 6
    assert again.output_tokens == 8


def test_reset_forgets_and_is_refused_while_something_runs() -> None:
    rig = Rig()
    rig.add(9, 3)
    rig.step()
    assert not rig.kv.reset()
    rig.run()
    assert rig.kv.reset()
    again = rig.add(9, 1)
    rig.step()
    assert again.cached_tokens == 0


def test_a_prompt_is_told_in_one_event_and_decoding_goes_on_after_it() -> None:
    rig = Rig()
    seq = rig.add(8, 5)
    rig.schedule()
    for row in rig.flight.popleft().rows:
        rig.scheduler.retire(row, [3])
    (event,) = rig.kv.log.take()
    chain = [name.hex() for name in rig.kv.pools[0].names()]
    assert event == BlockStored(1, tuple(chain))
    for _ in range(4):
        (row,) = rig.scheduler.schedule(0).rows
        rig.scheduler.retire(row, [3])
    (event,) = rig.kv.log.take()
    assert event.parent == chain[1]
    assert event.hashes == (seq.hashes[2].hex(),)


def test_a_snapshot_has_the_number_of_the_last_event() -> None:
    rig = Rig()
    rig.add(9, 6)
    rig.run()
    snapshot = rig.kv.snapshot()
    assert snapshot.seq == rig.kv.log.seq
    assert set(snapshot.hashes) == rig.events


@pytest.mark.parametrize(("ttl", "is_kept"), [(None, False), (100, True), (0, False)])
def test_a_pinned_prompt_outlives_younger_ones(ttl: int | None, is_kept: bool) -> None:
    rig = Rig(6)
    rig.add(9, 1, pins=(KvPin(8, ttl),))
    rig.run()
    for start in (40, 60):
        rig.add(range(start, start + 16), 1)
        rig.run()
    assert (names(list(range(8))) <= rig.events) == is_kept


def test_a_pin_of_more_than_was_computed_pins_what_was() -> None:
    rig = Rig(6, max_batch_tokens=6)
    seq = rig.add(9, 1, pins=(KvPin(8, 50),))
    rig.step()
    assert len(seq.tables[0]) == 2
    rig.scheduler.abort(seq)
    assert len(rig.kv.pools[0]._pinned) == len(rig.kv.pools[0]._ttls) == 1


def test_a_lease_keeps_blocks_after_their_sequence() -> None:
    rig = Rig(3)
    seq = rig.add(9, 4)
    rig.step()
    lease = rig.kv.hold(seq.tables)
    rig.scheduler.abort(seq)
    assert rig.kv.pools[0].protected == 3
    waiter = rig.scheduler.schedule(0)
    assert waiter.rows == ()
    rig.kv.release(lease)
    rig.check()
    assert rig.kv.pools[0].protected == 0


def test_idle_blocks_of_a_hit_are_not_counted_as_room_for_the_rest() -> None:
    rig = Rig(4)
    rig.add(9, 1)
    rig.run()
    lease = [rig.kv.pools[0].take(2)]
    assert rig.kv.pools[0].evictable == 2
    seq = rig.add([*range(8), *([50] * 5)], 1)
    assert rig.scheduler.schedule(0).rows == ()
    rig.kv.release(lease)
    rig.run()
    assert seq.cached_tokens == 8


def test_a_lease_that_fills_the_pool_lets_others_wait_and_not_fail() -> None:
    rig = Rig(3)
    seq = rig.add(9, 4)
    rig.step()
    lease = rig.kv.hold(seq.tables)
    rig.scheduler.abort(seq)
    other = rig.add(range(50, 59), 1)
    assert rig.scheduler.schedule(0).rows == ()
    rig.kv.release(lease)
    rig.run()
    assert other.output_tokens == 1


@pytest.mark.parametrize("extras", [(), (b"salt:a",), (b"salt:a", b"", b"media:x@1"), (b"",) * 9])
def test_hashes_made_one_by_one_are_those_of_the_chain(extras: tuple[bytes, ...]) -> None:
    rig = Rig()
    seq = rig.add(2, 20, extras=extras)
    rig.run()
    rig.kv.identify(seq)
    assert seq.hashes == list(blocks.chain(ROOT, TokenIds(seq.tokens), SIZE, extras))
    assert len(seq.hashes) == 5


def test_no_group_at_all_is_refused() -> None:
    from tokenwire.plugins.engines.cuda.policy.kv import BlockTables

    with pytest.raises(ValueError, match="KV group"):
        BlockTables([], SIZE, ROOT)


def job(**fields) -> TokenJob:
    return TokenJob(job="j", model="m", prompt=TokenIds(range(9)), **fields)


def test_a_jobs_salt_and_adapter_reach_the_hash() -> None:
    rig = Rig()
    kinds = (
        job(),
        job(kv=KvSettings(salt="s")),
        job(adapter=Adapter("a", "1")),
        job(kv=KvSettings(salt="s"), adapter=Adapter("a", "1")),
    )
    for kind in (*kinds, *kinds):
        seq = sequence(kind, block_size=SIZE, context_length=10)
        assert rig.scheduler.add(seq) == ""
        rig.known.append(seq)
        rig.run()
    assert [seq.cached_tokens for seq in rig.known] == [0] * 4 + [8] * 4


@given(
    prompts=st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=20), min_size=1, max_size=6)
)
def test_without_eviction_a_hit_is_the_longest_common_prefix(prompts: list[list[int]]) -> None:
    rig = Rig(200)
    seen: list[list[int]] = []
    for prompt in prompts:
        seq = rig.add(prompt, 1)
        rig.run()
        most = 0
        for other in seen:
            same = 0
            while same < min(len(prompt), len(other)) and prompt[same] == other[same]:
                same += 1
            most = max(most, same // SIZE * SIZE)
        assert seq.cached_tokens == min(most, (len(prompt) - 1) // SIZE * SIZE)
        seen.append(prompt)
