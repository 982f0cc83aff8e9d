"""What a reply says, without its bytes: events to content, reasoning, calls. Both replies run it.

Rules that live here, so that a stream adds up to the unary body:
- Where tools are offered, text that is only whitespace is held back: beside calls it is nothing,
  and an answer of nothing but whitespace keeps it. At most `HELD` characters are held.
- The arguments of a call that ended without any are "{}"; of one that was cut off, what there is.
- `logprobs` has the tokens of the content only: not of reasoning, calls or cut-off stop text.
- Where `echo` is asked for, the text of an assistant's message at the end comes before the content.
- With `stream_reasoning: false` the reasoning of a part is said whole, where the part ends.
- The id of call k of choice c is made from number 1 + c * 4096 + k, so that it does not depend on
  how choices are interleaved.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

from tokenwire.core.call import Call
from tokenwire.core.dialogue import Text
from tokenwire.core.errors import CodecStateError
from tokenwire.core.events import (
    Event,
    Failed,
    Finished,
    Logprobs,
    Order,
    PartDelta,
    PartEnd,
    PartStart,
    Started,
    TokenLogprob,
    Usage,
)
from tokenwire.core.ports.codec import Reply
from tokenwire.core.wire import Stamp

__all__ = ("ChoiceState", "Machine")

HELD: Final = 64
CALLS_PER_CHOICE: Final = 4096


class ChoiceState:
    """Where one choice stands."""

    __slots__ = ("calls", "custom", "has_arguments", "held", "ids", "kind", "logprobs", "thoughts")

    def __init__(self) -> None:
        self.kind = ""
        self.calls: int = 0
        self.custom = False
        self.has_arguments = False
        self.held: str | None = None
        """Whitespace held back; None when content passes through."""
        self.logprobs: list[TokenLogprob] = []
        self.ids: list[int] = []
        """Generated, and not told yet."""
        self.thoughts = ""
        """Reasoning of the open part that waits for its end."""

    def save(self) -> list[object]:
        logprobs = [_flat(token) for token in self.logprobs]
        head = [self.kind, self.calls, self.custom, self.has_arguments, self.held, self.thoughts]
        return [*head, self.ids, logprobs]

    def restore(self, state: list[object]) -> None:
        *head, ids, logprobs = state
        self.kind, self.calls, self.custom, self.has_arguments, self.held = head[:5]  # type: ignore[assignment]
        self.thoughts = str(head[5])
        self.ids = list(ids)  # type: ignore[call-overload]
        self.logprobs = [_unflat(flat) for flat in logprobs]  # type: ignore[attr-defined]


class Machine(Reply, ABC):
    """Checks the order, keeps the rules, and calls the methods below with what is to be said."""

    def __init__(self, call: Call, stamp: Stamp) -> None:
        self._call = call
        self._stamp = stamp
        self._order = Order(call.output.n)
        self._choices = [ChoiceState() for _ in range(call.output.n)]
        self._sends_reasoning = call.extra.get("include_reasoning") is not False
        self._gathers_reasoning = call.extra.get("stream_reasoning") is False
        self._echo = _final_text(call) if call.output.echo else ""
        self._holds = bool(call.dialogue.tools) and call.dialogue.tool_choice.mode != "none"
        if self._holds:
            for choice in self._choices:
                choice.held = ""

    @abstractmethod
    def _started(self, started: Started) -> bytes: ...

    @abstractmethod
    def _content(self, choice: int, text: str, logprobs: list[TokenLogprob]) -> bytes: ...

    @abstractmethod
    def _reasoning(self, choice: int, text: str) -> bytes: ...

    @abstractmethod
    def _call_started(self, index: int, id_: str, start: PartStart) -> bytes: ...

    @abstractmethod
    def _arguments(self, choice: int, index: int, text: str) -> bytes: ...

    @abstractmethod
    def _finished(self, finished: Finished) -> bytes: ...

    @abstractmethod
    def _ended(self, usage: Usage) -> bytes: ...

    @abstractmethod
    def _failed(self, failed: Failed) -> bytes: ...

    def push(self, event: Event) -> bytes:
        self._order.step(event)
        match event:
            case PartDelta():
                return self._delta(event)
            case PartStart():
                return self._start(event)
            case PartEnd():
                return self._end(event)
            case Logprobs(choice, tokens, ids):
                self._choices[choice].logprobs.extend(tokens)
                self._choices[choice].ids.extend(ids)
                return b""
            case Finished():
                return self._finish(event)
            case Started():
                return self._started(event) + self._echoed()
            case Usage():
                return self._ended(event)
            case Failed():
                return self._failed(event)

    def _echoed(self) -> bytes:
        if not self._echo:
            return b""
        return b"".join(self._content(k, self._echo, []) for k in range(len(self._choices)))

    def _start(self, start: PartStart) -> bytes:
        state = self._choices[start.choice]
        state.kind = start.kind
        if start.kind != "tool_call":
            return b""
        index = state.calls
        if index == CALLS_PER_CHOICE:
            raise CodecStateError(f"choice {start.choice} has {CALLS_PER_CHOICE} calls already")
        state.calls += 1
        state.custom, state.has_arguments = start.custom, False
        if self._holds:
            state.held, state.logprobs = "", []
        number = 1 + start.choice * CALLS_PER_CHOICE + index
        id_ = start.call_id or f"call_{self._stamp.token(number)}"
        return self._call_started(index, id_, start)

    def _delta(self, delta: PartDelta) -> bytes:
        choice, text = delta.choice, delta.text
        state = self._choices[choice]
        if not text:
            return b""
        if state.kind == "text":
            if state.held is not None:
                text = state.held + text
                if len(text) <= HELD and text.isspace():
                    state.held = text
                    return b""
                state.held = None
            logprobs, state.logprobs = state.logprobs, []
            return self._content(choice, text, logprobs)
        # Why: entries of these tokens are of no content.
        state.logprobs = []
        if state.kind == "reasoning":
            if not self._sends_reasoning:
                return b""
            if self._gathers_reasoning:
                state.thoughts += text
                return b""
            return self._reasoning(choice, text)
        state.has_arguments = True
        return self._arguments(choice, state.calls - 1, text)

    def _end(self, end: PartEnd) -> bytes:
        state = self._choices[end.choice]
        kind, state.kind = state.kind, ""
        if state.thoughts:
            thoughts, state.thoughts = state.thoughts, ""
            return self._reasoning(end.choice, thoughts)
        if kind == "tool_call" and end.complete and not (state.has_arguments or state.custom):
            return self._arguments(end.choice, state.calls - 1, "{}")
        if kind == "text" and self._holds and state.calls:
            state.held = ""
        return b""

    def _finish(self, finished: Finished) -> bytes:
        state = self._choices[finished.choice]
        data = b""
        if state.held and not state.calls:
            data = self._content(finished.choice, state.held, state.logprobs)
        state.held, state.logprobs = None, []
        return data + self._finished(finished)

    def _save(self) -> list[object]:
        life, states = self._order.save()
        return [life, states, [choice.save() for choice in self._choices]]

    def _restore(self, life: str, states: list[str], choices: list[list[object]]) -> None:
        self._order.restore(life, states)
        for choice, saved in zip(self._choices, choices, strict=True):
            choice.restore(saved)


def _final_text(call: Call) -> str:
    turns = call.dialogue.turns
    if not turns or turns[-1].role != "assistant":
        return ""
    return "".join(part.text for part in turns[-1].parts if isinstance(part, Text))


def _flat(token: TokenLogprob) -> list[object]:
    top = [_flat(other) for other in token.top]
    return [token.id, token.text, token.bytes, token.logprob, top]


def _unflat(flat: list[object]) -> TokenLogprob:
    id_, text, data, logprob, top = flat
    return TokenLogprob(id_, text, data, logprob, tuple(_unflat(t) for t in top))  # type: ignore[arg-type, attr-defined]
