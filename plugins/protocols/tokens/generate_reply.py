"""Answers in ids to bytes. Knows no request and no text: of events it reads Logprobs, for the ids.

A stream is one head (id, model, fingerprint, prompt_tokens), pieces of ids of all choices
interleaved, a finish a choice, the usage, and `data: [DONE]`. A failure is one error event.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final, TypeAlias, final

import msgspec

from tokenwire.core.call import Call
from tokenwire.core.errors import CodecStateError
from tokenwire.core.events import (
    Event,
    Failed,
    Finished,
    Logprobs,
    Order,
    Started,
    TokenLogprob,
    Usage,
)
from tokenwire.core.ports.codec import Reply
from tokenwire.core.wire import Stamp, escape_breaks, sse
from tokenwire.plugins.protocols._shared.openai_errors import error_body

__all__ = ("StreamReply", "UnaryReply")

DONE: Final = b"data: [DONE]\n\n"
FLOOR: Final = -9999.0
"""What stands for a log probability that JSON cannot hold, or that is below it."""

Saved: TypeAlias = tuple[str, list[str], str]
Body: TypeAlias = dict[str, object]

_encode: Final = msgspec.json.Encoder().encode


class IdReply(Reply, ABC):
    """What both have in common."""

    def __init__(self, call: Call, stamp: Stamp) -> None:
        self._call = call
        self._stamp = stamp
        self._order = Order(call.output.n)
        self._fingerprint = ""
        self._wants_logprobs = call.output.logprobs is not None

    @abstractmethod
    def _begin(self, started: Started) -> bytes: ...

    @abstractmethod
    def _tokens(self, choice: int, tokens: Sequence[TokenLogprob]) -> bytes: ...

    @abstractmethod
    def _finish(self, finished: Finished) -> bytes: ...

    @abstractmethod
    def _end(self, usage: Usage) -> bytes: ...

    @abstractmethod
    def _fail(self, failed: Failed) -> bytes: ...

    def push(self, event: Event) -> bytes:
        self._order.step(event)
        match event:
            case Logprobs(choice, tokens):
                return self._tokens(choice, tokens)
            case Started():
                self._fingerprint = event.fingerprint
                return self._begin(event)
            case Finished():
                return self._finish(event)
            case Usage():
                return self._end(event)
            case Failed():
                return self._fail(event)
        return b""

    def _head(self) -> Body:
        model = {"model": self._call.model} if self._call.model else {}
        return {"id": f"gen-{self._stamp.id}", **model, "fingerprint": self._fingerprint}

    def _piece(self, tokens: Sequence[TokenLogprob]) -> Body:
        piece: Body = {"ids": [token.id for token in tokens]}
        if self._wants_logprobs:
            piece["logprobs"] = [_entry(token) for token in tokens]
        return piece

    def _state(self) -> tuple[object, ...]:
        life, states = self._order.save()
        return (life, states, self._fingerprint)

    def _take(self, saved: Saved) -> None:
        life, states, self._fingerprint = saved
        self._order.restore(life, states)


@final
class StreamReply(IdReply):
    content_type = "text/event-stream"

    def keepalive(self) -> bytes:
        return b": keep-alive\n\n"

    def save(self) -> object:
        return self._state()

    def restore(self, state: object) -> None:
        self._take(msgspec.convert(state, Saved))

    def _begin(self, started: Started) -> bytes:
        return _sse(self._head() | {"prompt_tokens": started.prompt_tokens})

    def _tokens(self, choice: int, tokens: Sequence[TokenLogprob]) -> bytes:
        return _sse({"index": choice, **self._piece(tokens)}) if tokens else b""

    def _finish(self, finished: Finished) -> bytes:
        return _sse({"index": finished.choice, "finish": finished.reason})

    def _end(self, usage: Usage) -> bytes:
        return _sse({"usage": _usage(usage)}) + DONE

    def _fail(self, failed: Failed) -> bytes:
        return sse(escape_breaks(error_body(failed.kind, failed.message)))


@final
class UnaryReply(IdReply):
    content_type = "application/json"

    def __init__(self, call: Call, stamp: Stamp) -> None:
        super().__init__(call, stamp)
        self._ids: list[list[int]] = [[] for _ in range(call.output.n)]
        self._logprobs: list[list[Body]] = [[] for _ in range(call.output.n)]
        self._reasons = [""] * call.output.n

    def save(self) -> object:
        return (self._state(), self._ids, self._logprobs, self._reasons)

    def restore(self, state: object) -> None:
        saved, self._ids, self._logprobs, self._reasons = msgspec.convert(
            state, tuple[Saved, list[list[int]], list[list[Body]], list[str]]
        )
        self._take(saved)

    def _begin(self, started: Started) -> bytes:
        return b""

    def _tokens(self, choice: int, tokens: Sequence[TokenLogprob]) -> bytes:
        self._ids[choice] += [token.id for token in tokens]
        if self._wants_logprobs:
            self._logprobs[choice] += [_entry(token) for token in tokens]
        return b""

    def _finish(self, finished: Finished) -> bytes:
        self._reasons[finished.choice] = finished.reason
        return b""

    def _end(self, usage: Usage) -> bytes:
        choices = [
            {
                "index": index,
                "ids": ids,
                "logprobs": self._logprobs[index] if self._wants_logprobs else None,
                "finish": self._reasons[index],
            }
            for index, ids in enumerate(self._ids)
        ]
        return _encode(self._head() | {"choices": choices, "usage": _usage(usage)})

    def _fail(self, failed: Failed) -> bytes:
        raise CodecStateError("a unary reply takes no Failed: answer with Codec.encode_error")


def _sse(body: Body) -> bytes:
    return sse(escape_breaks(_encode(body)))


def _value(logprob: float) -> float | None:
    return None if math.isnan(logprob) else max(logprob, FLOOR)


def _entry(token: TokenLogprob) -> Body:
    """The token's log probability, and its likeliest alternatives as [id, value]."""
    top = [[other.id, _value(other.logprob)] for other in token.top]
    return {"logprob": _value(token.logprob), "top": top}


def _usage(usage: Usage) -> dict[str, int]:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "cached_tokens": usage.cached_tokens,
    }
