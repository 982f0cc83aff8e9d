"""Events to bytes: the stream of chunks, and the unary body. Knows no request bytes, no connection.

A stream is chunks of text of all choices interleaved, a chunk with finish_reason a choice, a usage
chunk if asked for, and `data: [DONE]`. A failure is one error event, after which nothing follows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final, TypeAlias, final

import msgspec

from tokenwire.core.call import Call
from tokenwire.core.errors import CodecStateError
from tokenwire.core.events import (
    Event,
    Failed,
    Finished,
    FinishReason,
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
from tokenwire.core.wire import Stamp, escape_breaks, json_text, sse
from tokenwire.plugins.protocols._shared.openai_errors import error_body
from tokenwire.plugins.protocols.completions.entries import Arrays, Cursor, entries
from tokenwire.plugins.protocols.completions.ranking import Candidate, best

__all__ = ("FINISH_REASONS", "StreamReply", "UnaryReply")

DONE: Final = b"data: [DONE]\n\n"
DIGITS: Final = 12

# A call cut off by a deadline or a lost client was cut, which clients read from `length`.
FINISH_REASONS: Final[dict[FinishReason, str]] = {
    "stop": "stop",
    "stop_sequence": "stop",
    "length": "length",
    "context_length": "length",
    "tool_calls": "stop",
    "cancelled": "length",
}

_encode: Final = msgspec.json.Encoder().encode

Places: TypeAlias = list[tuple[int, bytes]]
Saved: TypeAlias = tuple[str, list[str], str, Places, list[list[TokenLogprob]]]
SavedUnary: TypeAlias = tuple[Saved, list[Candidate]]


class CompletionReply(Reply, ABC):
    """What both have in common: the order, where tokens stand, and what a chunk is made of."""

    def __init__(self, call: Call, stamp: Stamp) -> None:
        output = call.output
        self._choices = max(1, len(call.prompts)) * output.candidates
        self._call = call
        self._stamp = stamp
        self._order = Order(self._choices)
        self._fingerprint = ""
        self._wants_logprobs = output.logprobs is not None
        self._cursors = [Cursor() for _ in range(self._choices)]
        self._pending: list[list[TokenLogprob]] = [[] for _ in range(self._choices)]

    @abstractmethod
    def _text(self, choice: int, text: str, tokens: list[TokenLogprob]) -> bytes: ...

    @abstractmethod
    def _part(self, start: PartStart) -> bytes: ...

    @abstractmethod
    def _finished(self, finished: Finished) -> bytes: ...

    @abstractmethod
    def _ended(self, usage: Usage) -> bytes: ...

    @abstractmethod
    def _failed(self, failed: Failed) -> bytes: ...

    def push(self, event: Event) -> bytes:
        self._order.step(event)
        match event:
            case PartDelta(choice, text):
                tokens, self._pending[choice] = self._pending[choice], []
                return self._text(choice, text, tokens) if text else b""
            case Logprobs(choice, tokens_):
                self._pending[choice].extend(tokens_)
                return b""
            case PartStart():
                return self._part(event)
            case PartEnd():
                return b""
            case Finished():
                return self._finished(event)
            case Started():
                if event.fingerprint:
                    self._fingerprint = f"fp_{event.fingerprint[:DIGITS]}"
                return b""
            case Usage():
                return self._ended(event)
            case Failed():
                return self._failed(event)

    def _head(self) -> dict[str, object]:
        head: dict[str, object] = {
            "id": f"cmpl-{self._stamp.id}",
            "object": "text_completion",
            "created": int(self._stamp.time),
            "model": self._call.model,
        }
        if self._fingerprint:
            head["system_fingerprint"] = self._fingerprint
        return head

    def _arrays(self, choice: int, text: str, tokens: list[TokenLogprob]) -> Arrays | None:
        if not self._wants_logprobs:
            return None
        offsets = self._cursors[choice].place(tokens, text)
        return entries(tokens, offsets, top=bool(self._call.output.logprobs))

    def _state(self) -> object:
        life, states = self._order.save()
        places = [(cursor.offset, cursor.carry) for cursor in self._cursors]
        state = (life, states, self._fingerprint, places, self._pending)
        return msgspec.to_builtins(state, builtin_types=(bytes,))

    def _take(self, saved: Saved) -> None:
        life, states, self._fingerprint, places, self._pending = saved
        self._order.restore(life, states)
        self._cursors = [Cursor(*place) for place in places]


@final
class StreamReply(CompletionReply):
    """Server-sent events. A delta without logprobs is one encoding of its text between two constant
    pieces."""

    content_type = "text/event-stream"

    def __init__(self, call: Call, stamp: Stamp) -> None:
        super().__init__(call, stamp)
        self.counts = call.output.continuous_usage
        self._around: dict[int, tuple[bytes, bytes]] = {}
        self._so_far: Usage | None = None

    def keepalive(self) -> bytes:
        return b": keep-alive\n\n"

    def count(self, usage: Usage) -> None:
        self._so_far = usage
        self._around.clear()

    def save(self) -> object:
        return self._state()

    def restore(self, state: object) -> None:
        self._take(msgspec.convert(state, Saved))
        self._around.clear()

    def _part(self, start: PartStart) -> bytes:
        return b""

    def _text(self, choice: int, text: str, tokens: list[TokenLogprob]) -> bytes:
        if self._wants_logprobs:
            arrays = self._arrays(choice, text, tokens)
            return self._chunk(choice, {"text": text, "logprobs": arrays, "finish_reason": None})
        pair = self._around.get(choice)
        if pair is None:
            pair = self._around[choice] = self._pair(choice)
        return pair[0] + (_encode(text) if text.isascii() else json_text(text)) + pair[1]

    def _pair(self, choice: int) -> tuple[bytes, bytes]:
        mark = "\x00"
        whole = self._chunk(choice, {"text": mark, "logprobs": None, "finish_reason": None})
        # Why the last: a model's name, which comes before, may hold anything.
        before, _, after = whole.rpartition(_encode(mark))
        return before, after

    def _chunk(self, choice: int, fields: dict[str, object]) -> bytes:
        body = self._head() | {"choices": [{"index": choice, **fields}]}
        if self._so_far is not None:
            body["usage"] = _usage(self._so_far)
        elif self._call.output.usage:
            # Why: with usage asked for, OpenAI sends null in every chunk but the last.
            body["usage"] = None
        return sse(escape_breaks(_encode(body)))

    def _finished(self, finished: Finished) -> bytes:
        self._pending[finished.choice] = []
        fields = {"text": "", "logprobs": None, **_finish(finished)}
        return self._chunk(finished.choice, fields)

    def _ended(self, usage: Usage) -> bytes:
        if not self._call.output.usage:
            return DONE
        body = self._head() | {"choices": [], "usage": _usage(usage)}
        return sse(escape_breaks(_encode(body))) + DONE

    def _failed(self, failed: Failed) -> bytes:
        return sse(escape_breaks(error_body(failed.kind, failed.message)))


@final
class UnaryReply(CompletionReply):
    """One body, with the last event. Of more candidates than were asked for, the best are in it."""

    content_type = "application/json"

    def __init__(self, call: Call, stamp: Stamp) -> None:
        super().__init__(call, stamp)
        self._candidates = [Candidate() for _ in range(self._choices)]

    def save(self) -> object:
        candidates = msgspec.to_builtins(self._candidates, builtin_types=(bytes,))
        return (self._state(), candidates)

    def restore(self, state: object) -> None:
        saved, self._candidates = msgspec.convert(state, SavedUnary)
        self._take(saved)

    def _part(self, start: PartStart) -> bytes:
        self._candidates[start.choice].parts += 1
        return b""

    def _text(self, choice: int, text: str, tokens: list[TokenLogprob]) -> bytes:
        candidate = self._candidates[choice]
        candidate.text += text
        candidate.add(self._arrays(choice, text, tokens))
        if not (self._call.output.echo and candidate.parts == 1):
            candidate.score(tokens)
        return b""

    def _finished(self, finished: Finished) -> bytes:
        self._candidates[finished.choice].finish = _finish(finished)
        return b""

    def _ended(self, usage: Usage) -> bytes:
        output = self._call.output
        chosen = best(self._candidates, candidates=output.candidates, n=output.n)
        choices = [
            {
                "index": index,
                "text": each.text,
                "logprobs": each.arrays if self._wants_logprobs else None,
                **each.finish,
            }
            for index, each in enumerate(chosen)
        ]
        return _encode(self._head() | {"choices": choices, "usage": _usage(usage)})

    def _failed(self, failed: Failed) -> bytes:
        raise CodecStateError("a unary reply takes no Failed: answer with Codec.encode_error")


def _finish(finished: Finished) -> dict[str, object]:
    """`stop_reason` is the stop string that matched, as other servers name it."""
    fields: dict[str, object] = {"finish_reason": FINISH_REASONS[finished.reason]}
    if finished.matched is not None:
        fields["stop_reason"] = finished.matched
    return fields


def _usage(usage: Usage) -> dict[str, object]:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }
