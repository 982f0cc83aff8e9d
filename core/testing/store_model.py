"""The store port as plain Python, and the law that any sequence of calls answers as it does.

Knows no time: what the sequences set lives long, and their buckets gain nothing. Buckets have a
namespace of their own, because what `get` shows of one is the store's own business.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable, Coroutine
from typing import Any, Literal, TypeAlias, final

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec import Struct

from tokenwire.core.errors import StoreError
from tokenwire.core.ports.store import AtomicOp, CompareAndSet, Incr, Lease, Store, Take
from tokenwire.core.testing.store_probe import StoreProbe

__all__ = ("Model", "model")

CAPACITY = 5.0
INTEGER = re.compile(rb"0|-?[1-9][0-9]*")
LONG_S = 3600.0


class Do(Struct, frozen=True):
    """One call: a verb with what it takes. `space` and `key` are indices of few names."""

    verb: Literal["get", "set", "delete", "keys", "apply", "take"]
    space: int
    key: int
    value: bytes = b""
    ttl_s: float | None = None
    op: AtomicOp | None = None

    def __str__(self) -> str:
        value = repr(self.value) if self.verb == "set" else ""
        return f"{self.verb}({self.space}, {self.key}, {self.op or value})"


Answer: TypeAlias = bytes | float | bool | tuple[str, ...] | None


@final
class Model:
    """Answers as a store must, "refused" standing for StoreError."""

    def __init__(self) -> None:
        self._values: dict[tuple[int, int], bytes] = {}
        self._levels: dict[tuple[int, int], float] = {}

    def do(self, call: Do) -> Answer | str:
        name = (call.space, call.key)
        match call.verb:
            case "get":
                return self._values.get(name)
            case "set":
                self._values[name] = call.value
                return None
            case "delete":
                return self._values.pop(name, None) is not None
            case "keys":
                return tuple(sorted(str(key) for space, key in self._values if space == call.space))
            case "apply" | "take":
                return self._apply(call.op, name)

    def _apply(self, op: AtomicOp | None, name: tuple[int, int]) -> float | str:
        held = self._values.get(name)
        match op:
            case Incr():
                if held is not None and INTEGER.fullmatch(held) is None:
                    return "refused"
                total = int(held or b"0") + op.by
                self._values[name] = str(total).encode()
                return float(total)
            case Take():
                level = self._levels.get(name, CAPACITY)
                if op.tokens > level:
                    return math.inf
                self._levels[name] = level - op.tokens
                return 0.0
            case Lease():
                holder = op.holder.encode()
                is_release = op.ttl_s == 0
                if held != holder and (is_release or held is not None):
                    return 0.0
                self._put(name, None if is_release else holder)
                return 1.0
            case CompareAndSet():
                if held != op.expected:
                    return 0.0
                self._put(name, op.value)
                return 1.0
            case None:
                raise AssertionError("a call without its op")

    def _put(self, name: tuple[int, int], value: bytes | None) -> None:
        if value is None:
            self._values.pop(name, None)
        else:
            self._values[name] = value


def _calls() -> st.SearchStrategy[list[Do]]:
    # Why: what goes wrong needs several calls on one key, so most sequences are long and narrow.
    few = st.sampled_from((0, 0, 0, 1))
    values = st.sampled_from((b"1", b"-3", b"", b"007", b"a", b"\0b"))
    maybe = st.one_of(st.none(), values)
    ttls = st.sampled_from((None, LONG_S))
    ops: tuple[st.SearchStrategy[AtomicOp], ...] = (
        st.builds(Incr, by=st.integers(-3, 3), ttl_s=ttls),
        st.builds(Lease, st.sampled_from(("a", "1", "")), st.sampled_from((0, LONG_S))),
        st.builds(CompareAndSet, expected=maybe, value=maybe, ttl_s=ttls),
    )
    takes = st.builds(Take, st.integers(0, 6), st.just(CAPACITY), st.just(0.0))
    one = st.one_of(
        *(st.builds(Do, st.just("apply"), few, few, op=op) for op in ops),
        st.builds(Do, st.just("set"), few, few, value=values, ttl_s=ttls),
        st.builds(Do, st.just("get"), few, few),
        st.builds(Do, st.sampled_from(("delete", "keys")), few, few),
        st.builds(Do, st.just("take"), few, few, op=takes),
    )
    return st.lists(one, min_size=20, max_size=40)


async def _ask(store: Store, call: Do, spaces: tuple[str, ...]) -> Answer | str:
    space, key = spaces[call.space], str(call.key)
    try:
        match call.verb:
            case "get":
                return await store.get(space, key)
            case "set":
                await store.set(space, key, call.value, ttl_s=call.ttl_s)
                return None
            case "delete":
                return await store.delete(space, key)
            case "keys":
                return tuple(sorted(await store.keys(space)))
            case "apply" | "take":
                assert call.op is not None
                where = space if call.verb == "apply" else f"{space}:buckets"
                return await store.apply(call.op, where, key)
    except StoreError:
        return "refused"


def model(probe: StoreProbe, examples: int) -> None:
    """Any sequence of calls answers as the model does."""
    with asyncio.Runner() as runner:
        opened = probe.open()

        async def enter() -> Store:
            return await opened.__aenter__()

        async def leave() -> None:
            await opened.__aexit__(None, None, None)

        store = runner.run(enter())
        try:
            _compare(probe, examples, store, runner.run)
        finally:
            runner.run(leave())


def _compare(
    probe: StoreProbe, examples: int, store: Store, run: Callable[[Coroutine[Any, Any, None]], None]
) -> None:
    @settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),  # pyright: ignore[reportArgumentType]
    )
    @given(_calls())
    def compare(calls: list[Do]) -> None:
        run(play(calls))

    async def play(calls: list[Do]) -> None:
        wanted, spaces = Model(), (probe.space(), probe.space())
        for number, call in enumerate(calls):
            got, answer = await _ask(store, call, spaces), wanted.do(call)
            # Why: keys are independent, so the calls on this one are the whole story.
            if got != answer:
                story = (str(past) for past in calls[: number + 1] if past.key == call.key)
                probe.equal("; ".join(story), got, answer)

    compare()
