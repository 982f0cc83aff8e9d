"""Hypothesis strategies for what plugins meet: texts, dialogues, calls, event streams, cuttings.

Event streams are walks through `events.ORDER`, so that they are all legal and reach every entry of
it. `sample` draws a fixed list from a strategy, the same at every run.
"""

from __future__ import annotations

import json
from math import inf
from typing import Final, TypeVar

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec import Struct

from tokenwire.core.call import Call, Output
from tokenwire.core.dialogue import Dialogue, Reasoning, Text, ToolCall, ToolResult, ToolSpec, Turn
from tokenwire.core.events import (
    ORDER,
    Event,
    Finished,
    FinishReason,
    Logprobs,
    PartDelta,
    PartEnd,
    PartKind,
    PartStart,
    Started,
    State,
    TokenLogprob,
    Usage,
)

__all__ = (
    "Shape",
    "arguments",
    "calls",
    "cuts",
    "dialogues",
    "event_streams",
    "sample",
    "texts",
    "token_logprobs",
)

T = TypeVar("T")

LONGEST: Final = 14
"""Events of one choice, after which its walk makes for the end."""

# Why: what has broken framings, escapes and decoders before.
AWKWARD: Final = (
    "data: [DONE]\n\ndata: x\r\n",
    "\u2028\u2029\u0085end",
    'quote " back \\ slash',
    "\x00\x07",
    "潮🌊 e\u0301",
    "<think></tool_call>",
    " ",
    "\n",
)
KEYS: Final = {state: sorted(key for at, key in ORDER if at == state) for state, _ in ORDER}


def sample(strategy: st.SearchStrategy[T], count: int) -> list[T]:
    """`count` values at most, smaller ones first, the same at every run."""
    found: list[T] = []

    @settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),  # pyright: ignore[reportArgumentType]
    )
    @given(strategy)
    def collect(value: T) -> None:
        found.append(value)

    collect()
    return sorted(found, key=lambda value: len(repr(value)))


def texts(min_size: int = 0) -> st.SearchStrategy[str]:
    """Any text that UTF-8 can hold, awkward ones often."""
    plain = st.text(st.characters(codec="utf-8"), min_size=min_size, max_size=12)
    return st.one_of(plain, st.sampled_from(AWKWARD))


def arguments() -> st.SearchStrategy[str]:
    """JSON objects as text, some of them empty."""
    values = st.one_of(texts(), st.integers(), st.booleans(), st.none(), st.just([1, {"a": []}]))
    objects = st.dictionaries(st.sampled_from(("port", "day", "é")), values, max_size=2)
    return objects.map(lambda value: json.dumps(value, ensure_ascii=False))


def cuts(data: bytes) -> st.SearchStrategy[list[bytes]]:
    """Ways of cutting `data` into pieces, empty ones among them."""
    places = st.lists(st.integers(0, len(data)), max_size=8).map(sorted)
    return places.map(
        lambda at: [data[a:b] for a, b in zip([0, *at], [*at, len(data)], strict=True)]
    )


def token_logprobs() -> st.SearchStrategy[TokenLogprob]:
    value = st.one_of(st.floats(-50, 0), st.just(-inf))

    def token(top: tuple[TokenLogprob, ...]) -> st.SearchStrategy[TokenLogprob]:
        return st.builds(
            lambda id_, text, logprob: TokenLogprob(id_, text, text.encode(), logprob, top),
            st.integers(0, 2**17),
            texts(1),
            value,
        )

    return st.lists(token(()), max_size=2).flatmap(lambda top: token(tuple(top)))


def dialogues() -> st.SearchStrategy[Dialogue]:
    """Conversations that hold together: each result answers a call made before it."""

    @st.composite
    def build(draw: st.DrawFn) -> Dialogue:
        turns: list[Turn] = []
        if draw(st.booleans()):
            turns.append(Turn("system", (Text(draw(texts(1))),)))
        for k in range(draw(st.integers(1, 3))):
            turns.append(Turn("user", (Text(draw(texts(1))),)))
            parts: list[Reasoning | Text | ToolCall] = []
            if draw(st.booleans()):
                parts.append(Reasoning(draw(texts(1))))
            parts.append(Text(draw(texts(1))))
            if draw(st.booleans()):
                call = ToolCall(f"call_{k}", "get_tide", draw(arguments()))
                result = ToolResult(call.id, (Text(draw(texts())),), name="get_tide")
                turns += (Turn("assistant", (*parts, call)), Turn("tool", (result,)))
            else:
                turns.append(Turn("assistant", tuple(parts)))
        turns.append(Turn("user", (Text(draw(texts(1))),)))
        tools = (ToolSpec("get_tide", "The tide.", '{"type":"object"}'),)
        return Dialogue(tuple(turns), tools=tools)

    return build()


def calls() -> st.SearchStrategy[Call]:
    outputs = st.builds(Output, stream=st.booleans())
    return st.builds(Call, model=st.just("m"), dialogue=dialogues(), output=outputs)


class Shape(Struct, frozen=True):
    """Which event streams to draw. What is off stands for what a wire may be unable to carry."""

    choices: int = 1
    kinds: tuple[PartKind, ...] = ("text", "reasoning", "tool_call")
    reasons: tuple[FinishReason, ...] = ("stop", "length")
    """`tool_calls` need not be named: it is the reason exactly where whole calls are."""
    logprobs: bool = False
    """Before text deltas."""
    custom: bool = False
    """Free-form tools among the calls."""
    call_ids: bool = False
    """Calls whose id the dialect wrote."""
    cut_calls: bool = True
    """A last call that `length` cut off."""
    details: bool = False
    """Cached, reasoning and cache creation tokens."""


DEFAULT_SHAPE: Final = Shape()


@st.composite
def event_streams(draw: st.DrawFn, shape: Shape = DEFAULT_SHAPE) -> list[Event]:
    """Whole legal answers that went well; choices are interleaved."""
    walks = [_Walk(draw, shape, k).events() for k in range(shape.choices)]
    counts = st.integers(0, 2**20) if shape.details else st.just(0)
    cached, created = draw(counts), draw(counts)
    # Why: what was read from a cache and what was written to it are parts of the prompt.
    prompt = cached + created + draw(st.integers(1, 9999))
    events: list[Event] = [Started(prompt, cached, "fp")]
    while any(walks):
        events.append(draw(st.sampled_from([walk for walk in walks if walk])).pop(0))
    answer = draw(st.integers(0, 9999))
    events.append(Usage(prompt, answer, cached, created, draw(counts)))
    return events


class _Walk:
    """One choice's way through ORDER; each step is drawn from the keys of the state it is in."""

    def __init__(self, draw: st.DrawFn, shape: Shape, choice: int) -> None:
        self._draw = draw
        self._shape = shape
        self._choice = choice
        self._state: State = "idle"
        self._events: list[Event] = []
        self._pieces: list[str] = []
        self._whole_calls = 0
        self._is_cut = False

    def events(self) -> list[Event]:
        while self._state != "finished":
            key = self._draw(st.sampled_from(self._keys()))
            state = self._state
            self._step(key)
            self._state = ORDER[state, key] if key != "logprobs" else self._state
        return self._events

    def _keys(self) -> list[str]:
        shape = self._shape
        if self._is_cut or len(self._events) > LONGEST:
            return ["finished"] if self._state == "idle" else ["end"]
        keys = set(KEYS[self._state]) - ({"text", "reasoning", "tool_call"} - set(shape.kinds))
        if not shape.logprobs or "text" not in shape.kinds or self._state not in ("idle", "text"):
            keys.discard("logprobs")
        if self._state == "tool_call":
            keys -= {"delta"} if not self._pieces else set() if shape.cut_calls else {"end"}
        return sorted(keys)

    def _step(self, key: str) -> None:
        choice, draw = self._choice, self._draw
        match key:
            case "text" | "reasoning":
                self._events.append(PartStart(choice, key))
            case "tool_call":
                self._start_call()
            case "delta":
                text = self._pieces.pop(0) if self._state == "tool_call" else draw(texts(1))
                self._events.append(PartDelta(choice, text))
            case "logprobs":
                tokens = draw(st.lists(token_logprobs(), min_size=1, max_size=3))
                text = "".join(token.text for token in tokens)
                if self._state == "idle":
                    self._state = "text"
                    self._events.append(PartStart(choice, "text"))
                self._events += (Logprobs(choice, tuple(tokens)), PartDelta(choice, text))
            case "end":
                self._is_cut = bool(self._pieces)
                self._whole_calls += self._state == "tool_call" and not self._is_cut
                self._events.append(PartEnd(choice, complete=not self._is_cut))
                self._pieces = []
            case "finished":
                self._events.append(self._finish())

    def _start_call(self) -> None:
        draw, shape = self._draw, self._shape
        custom = shape.custom and draw(st.booleans())
        text = draw(texts(1)) if custom else draw(st.one_of(arguments(), st.just("")))
        at = draw(st.integers(0, len(text)))
        self._pieces = [piece for piece in (text[:at], text[at:]) if piece]
        id_ = f"call_{len(self._events)}" if shape.call_ids and draw(st.booleans()) else None
        name = draw(st.sampled_from(("get_tide", "set_lamp")))
        self._events.append(PartStart(self._choice, "tool_call", name, id_, custom))

    def _finish(self) -> Finished:
        if self._is_cut:
            return Finished(self._choice, "length")
        if self._whole_calls:
            return Finished(self._choice, "tool_calls")
        reason = self._draw(st.sampled_from(self._shape.reasons))
        return Finished(self._choice, reason, "END" if reason == "stop_sequence" else None)
