"""Writes to one stream wait for each other, and change nothing but when they come."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from tokenwire.core.errors import ErrorKind
from tokenwire.core.events import Failed, PartDelta
from tokenwire.core.flusher import Flusher
from tokenwire.core.ports.codec import Reply
from tokenwire.core.stream import AnswerStream
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import Finish, FinishCause, FinishKind, TokenDelta

STOP = Finish(FinishKind.STOP, FinishCause.EOS)


class Letters:
    """A generation that says each id as a letter, and sees what it is given."""

    def __init__(self, breaks_at=None):
        self.is_over = False
        self.unwanted = []
        self.given = []
        self.length = 0
        self._breaks_at = breaks_at

    def push(self, delta):
        if self._breaks_at is not None and self.length + len(delta.ids) > self._breaks_at:
            raise ValueError("broken")
        self.given.append(delta)
        ids = delta.ids[self.length - delta.at :]
        self.length += len(ids)
        self.is_over = delta.finish is not None
        return [PartDelta(0, chr(97 + id)) for id in ids]

    def end(self, finish):
        self.is_over = True
        return Failed(ErrorKind.INTERNAL, "lost")


class Plain(Reply):
    content_type = "text/plain"

    def push(self, event):
        return b"!" if type(event) is Failed else event.text.encode()

    def save(self):
        return None

    def restore(self, state):
        pass


def delta(at, *ids, finish=None):
    return TokenDelta("j", at, ids=TokenIds(ids), finish=finish)


class Client:
    """Takes what is written, as a connection does."""

    def __init__(self, interval, *, gathers=True, breaks_at=None, stream=True):
        self.generation = Letters(breaks_at)
        self.writes = []
        self.broken = 0
        self.stream = AnswerStream(
            self.generation,
            Plain(),
            stream=stream,
            abort=lambda choice: None,
            flusher=Flusher(interval),
            break_off=self.break_off,
            gathers=gathers,
        )
        self.stream.direct = self.write

    def break_off(self):
        self.broken += 1
        self.stream.end(STOP)

    def write(self, data):
        self.writes.append(data)
        return True

    async def drain(self):
        while not self.stream.is_over or self.stream.has_bytes:
            await self.stream.wait()
            self.writes += [data] if (data := self.stream.take()) else []
            self.stream.taken()

    def step(self, each):
        self.stream.push(each)
        self.stream.wake()


async def played(deltas, interval, **more):
    client = Client(interval, **more)
    reading = asyncio.ensure_future(client.drain())
    await asyncio.sleep(0)
    for each in deltas:
        client.step(each)
        await asyncio.sleep(0)
    await reading
    return client


STEPS = st.lists(st.lists(st.integers(0, 25), min_size=1, max_size=3), min_size=1, max_size=12)


@given(STEPS, st.sampled_from([0.0, 0.002]), st.booleans())
def test_the_bytes_are_the_same(steps, interval, gathers):
    at, deltas = 0, []
    for ids in steps:
        deltas.append(delta(at, *ids))
        at += len(ids)
    deltas.append(delta(at, finish=STOP))
    client = asyncio.run(played(deltas, interval, gathers=gathers))
    assert b"".join(client.writes) == bytes(97 + id for ids in steps for id in ids)


def test_what_comes_soon_after_a_write_waits_and_goes_together():
    async def check():
        client = Client(0.05)
        reading = asyncio.ensure_future(client.drain())
        await asyncio.sleep(0)
        for at in range(5):
            client.step(delta(at, at))
            await asyncio.sleep(0)
        assert client.writes == [b"a"], "the first is written at once"
        await asyncio.sleep(0.1)
        assert client.writes == [b"a", b"bcde"]
        assert [len(each.ids) for each in client.generation.given] == [1, 1, 3]
        client.step(delta(5, 5))
        assert client.writes == [b"a", b"bcde", b"f"], "after a pause it is written at once"
        client.step(delta(6, 6, finish=STOP))
        await reading
        assert b"".join(client.writes) == b"abcdefg"

    asyncio.run(check())


def test_ids_of_a_whole_answer_are_read_together():
    deltas = [*(delta(at, at) for at in range(5)), delta(5, finish=STOP)]
    client = asyncio.run(played(deltas, 0.5, stream=False))
    assert [len(each.ids) for each in client.generation.given] == [1, 4, 0]
    assert client.writes == [b"abcde"]


def test_what_waits_when_the_client_leaves_counts_as_made():
    async def check():
        client = Client(0.5)
        reading = asyncio.ensure_future(client.drain())
        await asyncio.sleep(0)
        for at in range(3):
            client.step(delta(at, at))
            await asyncio.sleep(0)
        reading.cancel()
        await asyncio.sleep(0)
        client.stream.leave()
        assert [len(each.ids) for each in client.generation.given] == [1, 1, 1]

    asyncio.run(check())


def test_without_an_interval_every_step_is_written():
    deltas = [*(delta(at, at) for at in range(4)), delta(4, finish=STOP)]
    client = asyncio.run(played(deltas, 0.0))
    assert client.writes == [b"a", b"b", b"c", b"d"]


def test_an_overlap_among_those_that_wait_is_read_as_it_came():
    deltas = [delta(0, 0), delta(1, 1), delta(2, 2), delta(1, 1, 2, 3), delta(4, finish=STOP)]
    client = asyncio.run(played(deltas, 0.05))
    assert b"".join(client.writes) == b"abcd"


def test_an_end_from_outside_comes_behind_what_waited():
    async def check():
        client = Client(0.5)
        reading = asyncio.ensure_future(client.drain())
        await asyncio.sleep(0)
        for at in range(4):
            client.step(delta(at, at))
            await asyncio.sleep(0)
        client.stream.end(STOP)
        await reading
        assert b"".join(client.writes) == b"abcd!"

    asyncio.run(check())


def test_a_fault_in_what_waited_ends_the_call_in_words(caplog):
    deltas = [delta(at, at) for at in range(4)]
    client = asyncio.run(asyncio.wait_for(played(deltas, 0.01, breaks_at=2), 10))
    assert client.broken == 1
    assert client.writes[-1].endswith(b"!")
    assert "ids that waited could not be read" in caplog.text


def test_a_stream_that_breaks_holds_up_no_other():
    class Broken:
        def flush(self):
            raise OSError("gone")

    class Whole:
        flushed = 0

        def flush(self):
            self.flushed += 1

    async def run():
        flusher, whole = Flusher(0.001), Whole()
        flusher.later(Broken())
        flusher.later(whole)
        await asyncio.sleep(0.02)
        return whole.flushed

    assert asyncio.run(run()) == 1
