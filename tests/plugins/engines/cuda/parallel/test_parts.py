"""Which part runs a job, and what parts hold: laws over all loads and all streams of events."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tokenwire.core.tokens import BlockRemoved, BlockSnapshot, BlockStored, KvEvent
from tokenwire.plugins.engines.cuda.parallel.front.choosing import Load, choose_part
from tokenwire.plugins.engines.cuda.parallel.front.held import HeldBlocks

LOADS = st.lists(
    st.builds(Load, tokens=st.integers(0, 50), held=st.integers(0, 50)), min_size=1, max_size=6
)


@given(LOADS)
def test_a_prefix_is_worth_no_more_than_it_saves(loads: list[Load]) -> None:
    chosen = loads[choose_part(loads)]
    least = min(load.tokens for load in loads)
    assert chosen.tokens - least <= chosen.held
    for other in loads:
        if other.tokens - least <= other.held:
            assert other.held <= chosen.held, "a longer prefix was in reach"
            assert other.held < chosen.held or other.tokens >= chosen.tokens


@given(LOADS)
def test_without_a_prefix_it_is_the_first_of_the_least_loaded(loads: list[Load]) -> None:
    bare = [Load(load.tokens) for load in loads]
    tokens = [load.tokens for load in bare]
    assert choose_part(bare) == tokens.index(min(tokens))


@given(LOADS, st.randoms(use_true_random=False))
def test_the_order_of_parts_matters_among_equals_alone(loads: list[Load], random) -> None:
    shuffled = list(loads)
    random.shuffle(shuffled)
    assert shuffled[choose_part(shuffled)] == loads[choose_part(loads)]


def name(number: int) -> str:
    return bytes([number]).hex()


NUMBERS = st.lists(st.integers(0, 12), min_size=1, max_size=5, unique=True)
EVENTS = st.one_of(
    NUMBERS.map(lambda found: BlockStored(0, tuple(map(name, found)), name(200))),
    NUMBERS.map(lambda found: BlockRemoved(0, tuple(map(name, found)))),
    st.lists(st.integers(0, 12), max_size=5, unique=True).map(
        lambda found: BlockSnapshot(0, tuple(map(name, found)))
    ),
)


def replay(held: set[str], event: KvEvent) -> set[str]:
    match event:
        case BlockStored():
            return held | set(event.hashes)
        case BlockRemoved():
            return held - set(event.hashes)
        case BlockSnapshot():
            return set(event.hashes)


@settings(max_examples=200)
@given(st.lists(st.tuples(st.integers(0, 2), EVENTS), max_size=20), st.integers(0, 2))
def test_a_block_is_held_while_any_part_holds_it(
    stream: list[tuple[int, KvEvent]], gone: int
) -> None:
    merged, parts = HeldBlocks(), [set[str](), set[str](), set[str]()]
    merged.log.is_heard = True
    seen, number = set[str](), 0
    for part, event in stream:
        merged.hear(part, event)
        parts[part] = replay(parts[part], event)
        for told in merged.log.take():
            number += 1
            assert told.seq == number, "numbers have no gap"
            if isinstance(told, BlockStored):
                assert not seen & set(told.hashes), "what is told is new"
            if isinstance(told, BlockRemoved):
                assert seen >= set(told.hashes), "what is told was there"
            seen = replay(seen, told)
        assert seen == set.union(*parts) == set(merged.snapshot().hashes)
    for part, own in enumerate(parts):
        for first in range(13):
            chain = [bytes([each]) for each in range(first, 13)]
            run = 0
            while run < len(chain) and chain[run].hex() in own:
                run += 1
            assert merged.prefix(part, chain) == run
    merged.drop(gone)
    parts[gone] = set()
    for told in merged.log.take():
        seen = replay(seen, told)
    assert seen == set.union(*parts)


def test_runs_of_new_blocks_are_told_as_chains() -> None:
    merged = HeldBlocks()
    merged.log.is_heard = True
    merged.hear(0, BlockStored(1, ("02", "03"), "01"))
    merged.hear(1, BlockStored(1, ("01", "02", "03", "04", "05"), "00"))
    assert merged.log.take() == (
        BlockStored(1, ("02", "03"), "01"),
        BlockStored(2, ("01",), "00"),
        BlockStored(3, ("04", "05"), "03"),
    )


def test_what_lies_elsewhere_than_on_a_device_is_not_counted() -> None:
    merged = HeldBlocks()
    merged.hear(0, BlockStored(1, ("02",), "01", tier="host"))
    assert merged.snapshot().hashes == ()
