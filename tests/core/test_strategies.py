"""The strategies of the kits: event streams are legal, and reach all of ORDER."""

from __future__ import annotations

import pytest

from tokenwire.core.events import ORDER, Order, PartStart
from tokenwire.core.testing.strategies import Shape, calls, cuts, event_streams, sample

EVERYTHING = Shape(
    choices=2,
    reasons=("stop", "stop_sequence", "length", "context_length", "cancelled"),
    logprobs=True,
    custom=True,
    call_ids=True,
    details=True,
)
NAMES = {"PartDelta": "delta", "PartEnd": "end", "Logprobs": "logprobs", "Finished": "finished"}


@pytest.mark.parametrize("shape", [Shape(), EVERYTHING, Shape(kinds=("text",))])
def test_streams_are_legal_and_end(shape):
    for events in sample(event_streams(shape), 100):
        order = Order(shape.choices)
        for event in events:
            order.step(event)
        assert order.is_over


def test_streams_reach_every_entry_of_the_table_but_two():
    """Logprobs come before text deltas only, so never within reasoning or a call."""
    reached = set()
    for events in sample(event_streams(EVERYTHING), 200):
        order = Order(EVERYTHING.choices)
        for event in events:
            if hasattr(event, "choice"):
                kind = event.kind if isinstance(event, PartStart) else NAMES[type(event).__name__]
                reached.add((order.states[event.choice], kind))
            order.step(event)
    unused = {("reasoning", "logprobs"), ("tool_call", "logprobs"), ("idle", "logprobs")}
    assert set(ORDER) - reached <= unused


def test_samples_are_the_same_each_time():
    assert sample(calls(), 20) == sample(calls(), 20)


def test_cuts_add_up():
    data = b"data: x\n\n"
    for pieces in sample(cuts(data), 50):
        assert b"".join(pieces) == data
