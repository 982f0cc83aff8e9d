"""Events to bytes: the stream of chunks, and the unary body. Knows no request bytes, no connection.

A stream is one role chunk a choice, deltas, a finish chunk a choice with an empty delta, a usage
chunk if asked for, and `data: [DONE]`. A failure is one error event, after which nothing follows.
"""

from __future__ import annotations

from typing import Final, TypeAlias, cast, final

import msgspec

from tokenwire.core.call import Call
from tokenwire.core.errors import CodecStateError
from tokenwire.core.events import (
    Event,
    Failed,
    Finished,
    PartDelta,
    PartStart,
    Started,
    TokenLogprob,
    Usage,
)
from tokenwire.core.wire import Stamp, escape_breaks, json_text, sse
from tokenwire.plugins.protocols._shared.openai_errors import error_body
from tokenwire.plugins.protocols.chat_completions.chunks import (
    DONE,
    Envelope,
    ReasoningField,
    finish_fields,
    logprobs_field,
    prompt_fields,
    reply_id,
    short_fingerprint,
    usage_field,
)
from tokenwire.plugins.protocols.chat_completions.machine import Machine

__all__ = ("StreamReply", "UnaryReply")

Saved: TypeAlias = tuple[str, list[str], list[list[object]], str]
SavedUnary: TypeAlias = tuple[
    str, list[str], list[list[object]], str, list[list[object]], dict[str, object]
]

_encode: Final = msgspec.json.Encoder().encode


@final
class StreamReply(Machine):
    """Server-sent events. While a part is open and nothing special is due, a delta costs one
    encoding of its text and two concatenations: `_fast` holds what stands around it."""

    content_type = "text/event-stream"

    def __init__(self, call: Call, stamp: Stamp, reasoning: ReasoningField) -> None:
        super().__init__(call, stamp)
        self._reasoning_field = reasoning
        self.counts = call.output.continuous_usage
        self._used: Usage | None = None
        self._fingerprint = ""
        self._envelope = Envelope(call, stamp, "")
        self._fast: dict[int, tuple[bytes, bytes]] = {}
        self._content_pairs: dict[int, tuple[bytes, bytes]] = {}

    def push(self, event: Event) -> bytes:
        if type(event) is PartDelta:
            pair = self._fast.get(event.choice)
            if pair is not None:
                text = event.text
                data = _encode(text) if text.isascii() else json_text(text)
                return pair[0] + data + pair[1]
        else:
            # Why: whatever else happens may change what the next delta needs around it.
            self._fast.clear()
        return super().push(event)

    def count(self, usage: Usage) -> None:
        self._used = usage
        self._envelope.count(usage)
        self._fast.clear()
        self._content_pairs.clear()

    def keepalive(self) -> bytes:
        return b": keep-alive\n\n"

    def save(self) -> object:
        return [*self._save(), self._fingerprint]

    def restore(self, state: object) -> None:
        life, states, choices, self._fingerprint = cast("Saved", state)
        self._restore(life, states, choices)
        self._envelope = Envelope(self._call, self._stamp, self._fingerprint)
        self._fast.clear()
        self._content_pairs.clear()

    def _started(self, started: Started) -> bytes:
        self._fingerprint = short_fingerprint(started.fingerprint)
        self._envelope = Envelope(self._call, self._stamp, self._fingerprint)
        if self._used is not None:
            self._envelope.count(self._used)
        # Why: beside calls the content is null; without tools there will be no calls.
        role = b'"role":"assistant","content":' + (b"null" if self._holds else b'""')
        said = prompt_fields(started)
        if not said:
            return b"".join(self._envelope.delta(k, role) for k in range(self._call.output.n))
        about = b"," + escape_breaks(_encode(said))[1:-1]
        rest = (self._envelope.delta(k, role) for k in range(1, self._call.output.n))
        return b"".join((self._envelope.begin(0, role, about), *rest))

    def _told(self, choice: int) -> list[int]:
        """The ids that the next chunk of this choice tells."""
        state = self._choices[choice]
        ids, state.ids = state.ids, []
        return ids

    def _content(self, choice: int, text: str, logprobs: list[TokenLogprob]) -> bytes:
        if self._order.states[choice] == "text":
            pair = self._content_pairs.get(choice)
            if pair is None:
                pair = self._envelope.around(choice, b'"content":', b"")
                self._content_pairs[choice] = pair
            self._fast[choice] = pair
        entries = logprobs_field(logprobs) if logprobs else None
        content = b'"content":' + json_text(text)
        return self._envelope.delta(choice, content, logprobs=entries, ids=self._told(choice))

    def _reasoning(self, choice: int, text: str) -> bytes:
        data = json_text(text)
        if self._reasoning_field == "both":
            delta = b'"reasoning_content":%b,"reasoning":%b' % (data, data)
            return self._envelope.delta(choice, delta, ids=self._told(choice))
        before = b'"%b":' % self._reasoning_field.encode()
        if self._order.states[choice] == "reasoning":
            self._fast[choice] = self._envelope.around(choice, before, b"")
        return self._envelope.delta(choice, before + data, ids=self._told(choice))

    def _call_started(self, index: int, id_: str, start: PartStart) -> bytes:
        kind, text = (b"custom", b"input") if start.custom else (b"function", b"arguments")
        delta = b'"tool_calls":[{"index":%d,"id":%b,"type":"%b","%b":{"name":%b,"%b":""}}]' % (
            index,
            json_text(id_),
            kind,
            kind,
            json_text(start.name),
            text,
        )
        return self._envelope.delta(start.choice, delta, ids=self._told(start.choice))

    def _arguments(self, choice: int, index: int, text: str) -> bytes:
        custom = self._choices[choice].custom
        kind, field = (b"custom", b"input") if custom else (b"function", b"arguments")
        before = b'"tool_calls":[{"index":%d,"%b":{"%b":' % (index, kind, field)
        if self._order.states[choice] == "tool_call":
            self._fast[choice] = self._envelope.around(choice, before, b"}}]")
        delta = before + json_text(text) + b"}}]"
        return self._envelope.delta(choice, delta, ids=self._told(choice))

    def _finished(self, finished: Finished) -> bytes:
        return self._envelope.finish(finished, self._told(finished.choice))

    def _ended(self, usage: Usage) -> bytes:
        return (self._envelope.usage(usage) if self._call.output.usage else b"") + DONE

    def _failed(self, failed: Failed) -> bytes:
        return sse(escape_breaks(error_body(failed.kind, failed.message)))


@final
class UnaryReply(Machine):
    """One JSON body, with the last event. It keeps the output, so its state grows with it.

    Why not `fold`: which white space and which logprobs count is decided as the events come, by the
    machine that streams run too; a folded answer no longer tells them apart.
    """

    content_type = "application/json"

    def __init__(self, call: Call, stamp: Stamp, reasoning: ReasoningField) -> None:
        super().__init__(call, stamp)
        names = ("reasoning_content", "reasoning") if reasoning == "both" else (reasoning,)
        self._reasoning_fields = names
        self._fingerprint = ""
        self._about: dict[str, object] = {}  # What is said of the prompt's tokens.
        self._bodies = [_Body() for _ in range(call.output.n)]

    def save(self) -> object:
        bodies = [body.save() for body in self._bodies]
        return [*self._save(), self._fingerprint, bodies, self._about]

    def restore(self, state: object) -> None:
        life, states, choices, self._fingerprint, bodies, self._about = cast("SavedUnary", state)
        self._restore(life, states, choices)
        for body, saved in zip(self._bodies, bodies, strict=True):
            body.restore(saved)

    def _started(self, started: Started) -> bytes:
        self._fingerprint = short_fingerprint(started.fingerprint)
        self._about = prompt_fields(started)
        return b""

    def _content(self, choice: int, text: str, logprobs: list[TokenLogprob]) -> bytes:
        body = self._bodies[choice]
        body.content.append(text)
        if logprobs:
            body.logprobs.extend(logprobs_field(logprobs)["content"])  # type: ignore[arg-type]
        return b""

    def _reasoning(self, choice: int, text: str) -> bytes:
        self._bodies[choice].reasoning.append(text)
        return b""

    def _call_started(self, index: int, id_: str, start: PartStart) -> bytes:
        self._bodies[start.choice].calls.append((id_, start.name, start.custom, []))
        return b""

    def _arguments(self, choice: int, index: int, text: str) -> bytes:
        self._bodies[choice].calls[index][3].append(text)
        return b""

    def _finished(self, finished: Finished) -> bytes:
        self._bodies[finished.choice].finish = finish_fields(finished)
        return b""

    def _ended(self, usage: Usage) -> bytes:
        body: dict[str, object] = {
            "id": reply_id(self._stamp),
            "object": "chat.completion",
            "created": int(self._stamp.time),
            "model": self._call.model,
            "choices": [self._choice(k, body) for k, body in enumerate(self._bodies)],
            "usage": usage_field(usage),
        }
        if self._fingerprint:
            body["system_fingerprint"] = self._fingerprint
        return _encode(body | self._about)

    def _failed(self, failed: Failed) -> bytes:
        raise CodecStateError("a unary reply takes no Failed: answer with Codec.encode_error")

    def _choice(self, index: int, body: _Body) -> dict[str, object]:
        message: dict[str, object] = {
            "role": "assistant",
            "content": "".join(body.content) or (None if self._holds or body.calls else ""),
            "refusal": None,
        }
        if body.reasoning:
            text = "".join(body.reasoning)
            message.update({name: text for name in self._reasoning_fields})
        if body.calls:
            message["tool_calls"] = [_call(*call) for call in body.calls]
        asked = self._call.output.logprobs is not None
        logprobs = {"content": body.logprobs, "refusal": None} if asked else None
        choice = {"index": index, "message": message, "logprobs": logprobs, **body.finish}
        if self._call.output.token_ids:
            choice["token_ids"] = self._choices[index].ids
        return choice


@final
class _Body:
    """One choice's message so far, in builtins."""

    __slots__ = ("calls", "content", "finish", "logprobs", "reasoning")

    def __init__(self) -> None:
        self.content: list[str] = []
        self.reasoning: list[str] = []
        self.calls: list[tuple[str, str, bool, list[str]]] = []
        self.logprobs: list[object] = []
        self.finish: dict[str, object] = {}

    def save(self) -> list[object]:
        return [self.content, self.reasoning, self.calls, self.logprobs, self.finish]

    def restore(self, state: list[object]) -> None:
        self.content, self.reasoning, self.calls, self.logprobs, self.finish = state  # type: ignore[assignment]


def _call(id_: str, name: str, custom: bool, pieces: list[str]) -> dict[str, object]:
    text = "".join(pieces)
    if custom:
        return {"id": id_, "type": "custom", "custom": {"name": name, "input": text}}
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": text}}
