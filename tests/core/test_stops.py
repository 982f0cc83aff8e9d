"""Stop strings: never sent, not even in part; found in any cutting; nothing held too long."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenwire.core.stops import StopStrings

ALPHABET = st.text("abc", max_size=30)
STOPS = st.lists(st.text("abc", min_size=1, max_size=4), min_size=1, max_size=3).map(tuple)


def run(
    text: str, stops: tuple[str, ...], sizes: list[int], *, include: bool = False
) -> tuple[str, str | None]:
    machine = StopStrings(stops, include=include)
    sent = ""
    at = 0
    for size in [*sizes, len(text)]:
        result = machine.push(text[at : at + size])
        at += size
        sent += result.text
        if result.matched is not None:
            return sent, result.matched
        resumed = StopStrings(stops, include=include)
        resumed.restore(machine.held)
        machine = resumed
    return sent + machine.flush(), None


def oracle(text: str, stops: tuple[str, ...]) -> tuple[str, str | None]:
    """One character at a time, looking back: the definition."""
    for end in range(1, len(text) + 1):
        hits = [stop for stop in stops if text[:end].endswith(stop)]
        if hits:
            longest = max(hits, key=len)
            return text[: end - len(longest)], longest
    return text, None


@given(ALPHABET, STOPS, st.lists(st.integers(1, 5), max_size=10))
def test_any_cutting_gives_what_the_definition_gives(
    text: str, stops: tuple[str, ...], sizes: list[int]
) -> None:
    assert run(text, stops, sizes) == oracle(text, stops)


@given(ALPHABET, STOPS, st.lists(st.integers(1, 5), max_size=10))
def test_include_keeps_the_match(text: str, stops: tuple[str, ...], sizes: list[int]) -> None:
    before, matched = oracle(text, stops)
    assert run(text, stops, sizes, include=True) == (before + (matched or ""), matched)


@given(ALPHABET, STOPS)
def test_only_what_may_still_become_a_stop_is_held(text: str, stops: tuple[str, ...]) -> None:
    machine = StopStrings(stops)
    for character in text:
        if machine.push(character).matched is not None:
            return
        held = machine.held
        assert held == "" or any(stop.startswith(held) and stop != held for stop in stops)


@pytest.mark.parametrize(
    ("stops", "pieces", "sent"),
    [
        (("Observation:",), ["Obs", " ok"], ["", "Obs ok"]),
        (("STOP",), ["a ST", "OP b"], ["a ", ""]),
        (("aab",), ["aa", "ab"], ["", "a"]),
    ],
)
def test_examples(stops: tuple[str, ...], pieces: list[str], sent: list[str]) -> None:
    machine = StopStrings(stops)
    assert [machine.push(piece).text for piece in pieces] == sent
