"""The inbox of a worker's thread: nothing that is put in, and no stop, waits for another word."""

from __future__ import annotations

import threading

from hypothesis import given, settings
from hypothesis import strategies as st

from tokenwire.core.threaded_engine import Inbox


def test_all_there_is_is_taken_in_order_with_what_comes_meanwhile() -> None:
    inbox: Inbox[int] = Inbox()
    inbox.put([1, 2])
    found = []
    for message in inbox.take():
        found.append(message)
        if message == 1:
            inbox.put([3])
    assert found == [1, 2, 3]


def test_what_came_before_a_sleep_ends_it() -> None:
    for act in (lambda inbox: inbox.put([1]), Inbox.stop, Inbox.ring):
        inbox: Inbox[int] = Inbox()
        act(inbox)
        sleeper = threading.Thread(target=inbox.sleep, daemon=True)
        sleeper.start()
        sleeper.join(30)
        assert not sleeper.is_alive()


def test_a_sleep_ends_at_its_time() -> None:
    inbox: Inbox[int] = Inbox()
    inbox.sleep(0.0)
    assert not list(inbox.take())


class Between(threading.Event):
    """Calls `act` between the end of a wait and the clearing, where a word could get lost."""

    def __init__(self, act) -> None:
        super().__init__()
        self.act = act

    def clear(self) -> None:
        self.act()
        super().clear()


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(), max_size=5))
def test_what_comes_as_a_sleep_ends_is_seen_by_the_look_after_it(messages: list[int]) -> None:
    inbox: Inbox[int] = Inbox()

    def act() -> None:
        inbox.put(messages)
        inbox.stop()

    inbox._something = Between(act)
    inbox.ring()
    inbox.sleep()
    assert list(inbox.take()) == messages
    assert inbox.is_stopping


def test_a_thread_gets_what_many_put() -> None:
    inbox: Inbox[int] = Inbox()
    found: list[int] = []

    def read() -> None:
        while not inbox.is_stopping:
            found.extend(inbox.take())
            inbox.sleep()
        found.extend(inbox.take())

    reader = threading.Thread(target=read)
    reader.start()
    writers = [
        threading.Thread(target=lambda k=k: [inbox.put([k * 100 + at]) for at in range(100)])
        for k in range(4)
    ]
    for each in writers:
        each.start()
    for each in writers:
        each.join()
    inbox.stop()
    reader.join(30)
    assert not reader.is_alive()
    assert sorted(found) == list(range(400))
