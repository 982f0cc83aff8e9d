"""ORDER is the law of events: every state with every event, and fold whatever the cutting."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenwire.core.errors import CodecStateError, ErrorKind
from tokenwire.core.events import (
    ORDER,
    Event,
    Failed,
    Finished,
    Logprobs,
    Order,
    PartDelta,
    PartEnd,
    PartStart,
    Started,
    Usage,
)
from tokenwire.core.fold import fold

EVENTS: dict[str, Event] = {
    "text": PartStart(0, "text"),
    "reasoning": PartStart(0, "reasoning"),
    "tool_call": PartStart(0, "tool_call", name="f"),
    "delta": PartDelta(0, "x"),
    "end": PartEnd(0),
    "logprobs": Logprobs(0, ()),
    "finished": Finished(0, "stop"),
}
WAYS: dict[str, list[str]] = {
    "idle": [],
    "text": ["text"],
    "reasoning": ["reasoning"],
    "tool_call": ["tool_call"],
    "finished": ["finished"],
}


@pytest.mark.parametrize("state", WAYS)
@pytest.mark.parametrize("key", EVENTS)
def test_every_state_with_every_event(state: str, key: str) -> None:
    order = Order()
    order.step(Started(1))
    for step in WAYS[state]:
        order.step(EVENTS[step])
    allowed = ORDER.get((state, key))  # type: ignore[call-overload]
    if allowed is None:
        with pytest.raises(CodecStateError):
            order.step(EVENTS[key])
    else:
        order.step(EVENTS[key])
        assert order.states == [allowed]


@pytest.mark.parametrize("event", [*EVENTS.values(), Usage(1, 1)])
def test_nothing_but_started_or_failed_begins(event: Event) -> None:
    with pytest.raises(CodecStateError):
        Order().step(event)


@pytest.mark.parametrize("last", [Usage(1, 1), Failed(ErrorKind.INTERNAL, "x")])
@pytest.mark.parametrize("event", [Started(1), *EVENTS.values(), Usage(1, 1)])
def test_nothing_comes_after_the_end(last: Event, event: Event) -> None:
    order = Order()
    order.step(Started(1))
    order.step(Finished(0, "stop"))
    order.step(last)
    assert order.is_over
    with pytest.raises(CodecStateError):
        order.step(event)


def test_usage_waits_for_every_choice() -> None:
    order = Order(2)
    order.step(Started(1))
    order.step(Finished(1, "stop"))
    with pytest.raises(CodecStateError):
        order.step(Usage(1, 1))
    order.step(Finished(0, "length"))
    order.step(Usage(1, 1))


@pytest.mark.parametrize("choice", [-1, 2])
def test_a_choice_that_is_none(choice: int) -> None:
    order = Order(2)
    order.step(Started(1))
    with pytest.raises(CodecStateError):
        order.step(PartStart(choice, "text"))


def test_a_saved_order_goes_on() -> None:
    order = Order()
    for event in (Started(1), PartStart(0, "text")):
        order.step(event)
    again = Order()
    again.restore(*order.save())
    again.step(PartDelta(0, "x"))
    with pytest.raises(CodecStateError):
        again.step(Finished(0, "stop"))


PARTS = st.lists(
    st.tuples(st.sampled_from(["text", "reasoning", "tool_call"]), st.text(max_size=12)),
    max_size=4,
)


@given(PARTS, st.randoms(use_true_random=False))
def test_fold_is_the_same_for_every_cutting(parts: list[tuple[str, str]], random: object) -> None:
    def stream(size: int) -> list[Event]:
        events: list[Event] = [Started(3)]
        for kind, text in parts:
            events.append(PartStart(0, kind))  # type: ignore[arg-type]
            pieces = [text[at : at + size] for at in range(0, len(text), size)]
            events += [PartDelta(0, piece) for piece in pieces]
            events.append(PartEnd(0))
        return [*events, Finished(0, "stop"), Usage(3, 1)]

    whole = fold(stream(100))
    assert [(part.kind, part.text) for part in whole.choices[0].parts] == parts
    for size in (1, 2, 5):
        events = stream(size)
        order = Order()
        for event in events:
            order.step(event)
        assert fold(events) == whole
