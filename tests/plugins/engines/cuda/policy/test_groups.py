"""Which cached blocks a sequence can start from, against a search through all boundaries."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenwire.plugins.engines.cuda.policy import groups


@pytest.mark.parametrize(
    ("window", "size", "wanted"),
    [(1, 4, 0), (2, 4, 1), (4, 4, 1), (5, 4, 1), (6, 4, 2), (9, 4, 2), (10, 4, 3), (128, 16, 8)],
)
def test_blocks_before_a_boundary(window: int, size: int, wanted: int) -> None:
    assert groups.window_blocks(window, size) == wanted


@pytest.mark.parametrize(
    ("window", "position", "wanted"),
    [(0, 1000, 0), (4, 0, 0), (4, 6, 0), (4, 7, 1), (4, 10, 1), (4, 11, 2), (1, 8, 2), (1, 7, 1)],
)
def test_the_first_block_that_a_query_sees(window: int, position: int, wanted: int) -> None:
    assert groups.first_needed(window, position, 4) == wanted


@pytest.mark.parametrize(
    ("there", "limit", "wanted"),
    [("", 3, 0), ("0", 3, 1), ("012", 3, 3), ("02", 3, 1), ("12", 3, 0), ("0123", 2, 2)],
)
def test_full_attention_wants_all_from_the_left(there: str, limit: int, wanted: int) -> None:
    assert groups.full_hit(lambda index: str(index) in there, limit) == wanted


@pytest.mark.parametrize(
    ("there", "limit", "needed", "wanted"),
    [
        ("", 5, 2, 0),
        ("34", 5, 2, 5),
        ("23", 5, 2, 4),
        ("134", 4, 2, 0),
        ("0", 5, 2, 1),
        ("01", 5, 2, 2),
        ("0134", 4, 2, 2),
        ("123", 5, 3, 4),
        ("", 5, 0, 5),
        ("4", 5, 1, 5),
    ],
)
def test_a_window_wants_the_last_blocks(there: str, limit: int, needed: int, wanted: int) -> None:
    assert groups.window_hit(lambda index: str(index) in there, limit, needed) == wanted


def accepts(window: int, there: set[int], boundary: int, size: int) -> bool:
    first = max(boundary - groups.window_blocks(window, size), 0) if window else 0
    return set(range(first, boundary)) <= there


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        ([(3, {4}), (0, {0, 1})], 0),
        ([(3, {1, 4}), (0, {0, 1, 2})], 2),
        ([(9, {3, 4}), (3, {2, 4}), (0, {0, 1, 2, 3, 4})], 5),
        ([(9, {0, 1, 4}), (3, {1, 2, 3})], 2),
        ([(1, set()), (0, {0, 1, 2})], 3),
    ],
)
def test_groups_are_asked_again_when_one_asks_for_less(
    found: list[tuple[int, set[int]]], wanted: int
) -> None:
    searches = [(window, there.__contains__) for window, there in found]
    assert groups.common_hit(searches, 5, 4) == wanted


@given(
    found=st.lists(
        st.tuples(st.sampled_from([0, 1, 3, 5, 9]), st.sets(st.integers(0, 7))),
        min_size=1,
        max_size=3,
    ),
    limit=st.integers(0, 8),
)
def test_the_common_hit_is_the_largest_that_all_accept(
    found: list[tuple[int, set[int]]], limit: int
) -> None:
    searches = [(window, there.__contains__) for window, there in found]
    wanted = max(
        boundary
        for boundary in range(limit + 1)
        if all(accepts(window, there, boundary, 4) for window, there in found)
    )
    assert groups.common_hit(searches, limit, 4) == wanted


@given(
    window=st.integers(1, 20),
    size=st.integers(1, 5),
    chunk=st.integers(1, 12),
    tokens=st.integers(1, 60),
)
def test_a_window_never_needs_more_than_most_blocks(
    window: int, size: int, chunk: int, tokens: int
) -> None:
    most = groups.most_blocks(window, tokens, chunk, size)
    done = 0
    trimmed = 0
    while done < tokens:
        end = min(done + chunk, tokens)
        assert -(-end // size) - trimmed <= most
        if end // size > done // size:
            trimmed = groups.first_needed(window, end, size)
        done = end
