"""Codecs that are broken, each in one way: the example protocol with one thing done wrong."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace
from mutants_ndjson import Ndjson as Good
from mutants_ndjson import NdjsonReply as GoodReply

from tokenwire.core.call import Call
from tokenwire.core.dialogue import Dialogue, Text, Turn
from tokenwire.core.errors import ErrorKind
from tokenwire.core.events import Event, Failed, Finished, PartDelta, PartEnd, PartStart, Usage
from tokenwire.core.wire import HttpReply

HELLO = Call("m", Dialogue((Turn("user", (Text("hi"),)),)))


def with_reply(reply):
    class Mutant(Good):
        def reply(self, call, stamp):
            return reply(call, stamp)

    return Mutant


def edited(edit, *, when=lambda call: True):
    """A codec whose replies say `edit(event)` instead of each event: an event, or none."""

    class Reply(GoodReply):
        def __init__(self, call, stamp):
            super().__init__(call, stamp)
            self.is_edited = when(call)

        def push(self, event: Event) -> bytes:
            if not self.is_edited:
                return super().push(event)
            self._order.step(event)
            said = edit(event)
            said = {"type": "failed", "message": said.message} if type(said) is Failed else said
            line = b"" if said is None else msgspec.json.encode(said) + b"\n"
            self._lines += b"" if self._stream else line
            return line if self._stream else self._lines if self._order.is_over else b""

    return with_reply(Reply)


def is_unary(call):
    return not call.output.stream


class WrongRole(Good):
    def decode(self, request):
        call = super().decode(request)
        turn = replace(call.dialogue.turns[0], role="system")
        return replace(call, dialogue=Dialogue((turn,)))


class Remembers(Good):
    seen = 0

    def decode(self, request):
        type(self).seen += 1
        return replace(super().decode(request), model=f"m{'!' * (self.seen // 2)}")


class LeaksKeyError(Good):
    def decode(self, request):
        super().decode(request)
        return HELLO if msgspec.json.decode(request.body)["model"] else {}["model"]


class EmptyErrorBody(Good):
    def encode_error(self, error, request_id):
        return HttpReply(error.status, "application/json", b"")


class UnmappedKind(Good):
    def encode_error(self, error, request_id):
        {kind: kind.word for kind in ErrorKind if kind is not ErrorKind.TIMEOUT}[error.kind]
        return super().encode_error(error, request_id)


class BlamesTheClient(Good):
    def encode_error(self, error, request_id):
        return replace(super().encode_error(error, request_id), status=400)


class Counted(GoodReply):
    """A counter on the class: the same answer is numbered on from the last one."""

    count = 0

    def push(self, event):
        data = super().push(event)
        Counted.count += 1
        return data.replace(b'"type"', b'"count":%d,"type"' % Counted.count)


class CountedAnew(GoodReply):
    """The same, reset by each reply, so that one reply at a time shows nothing."""

    count = 0

    def __init__(self, call, stamp):
        super().__init__(call, stamp)
        CountedAnew.count = 0

    def push(self, event):
        data = super().push(event)
        CountedAnew.count += 1
        return data.replace(b'"type"', b'"count":%d,"type"' % CountedAnew.count)


class SharedLines(GoodReply):
    """A buffer on the class, emptied by the end of each answer."""

    shared: list[bytes] = []  # noqa: RUF012

    def push(self, event):
        self._order.step(event)
        said = {"type": "failed", "message": event.message} if type(event) is Failed else event
        self.shared.append(msgspec.json.encode(said) + b"\n")
        if not (self._stream or self._order.is_over):
            return b""
        data = b"".join(self.shared)
        self.shared.clear()
        return data


class Unchecked(GoodReply):
    def push(self, event):
        try:
            return super().push(event)
        except Exception:
            return msgspec.json.encode(event) + b"\n"


class NothingSaved(GoodReply):
    def save(self):
        return ["open", ["text"] * len(self._order.states), b""]


class Hoards(GoodReply):
    def __init__(self, call, stamp):
        super().__init__(call, stamp)
        self.said = b""

    def push(self, event):
        data = super().push(event)
        self.said += data
        return data

    def save(self):
        return [*super().save(), self.said]

    def restore(self, state):
        *state, self.said = state
        super().restore(state)


class EmptyCallsDropped(GoodReply):
    """A call's start is only written with its first arguments."""

    def __init__(self, call, stamp):
        super().__init__(call, stamp)
        self.waiting = {}

    def push(self, event):
        data = super().push(event)
        if self._stream and type(event) is PartStart and event.kind == "tool_call":
            self.waiting[event.choice] = data
            return b""
        if type(event) is PartDelta:
            return self.waiting.pop(event.choice, b"") + data
        if type(event) is PartEnd and self.waiting.pop(event.choice, b""):
            return b""
        return data


def no_reasoning():
    open_parts: set[int] = set()

    def edit(event):
        if type(event) is PartStart and event.kind == "reasoning":
            open_parts.add(event.choice)
            return None
        if type(event) is PartDelta and event.choice in open_parts:
            return None
        if type(event) is PartEnd and event.choice in open_parts:
            open_parts.discard(event.choice)
            return None
        return event

    return edit


def no_matched(event):
    return replace(event, matched=None) if type(event) is Finished else event


def no_cached(event):
    return replace(event, cached_tokens=0) if type(event) is Usage else event


def always_stop(event):
    return replace(event, reason="stop") if type(event) is Finished else event


def shorter(event):
    return None if type(event) is PartDelta and len(event.text) > 5 else event


def fake_ending(event):
    return Usage(1, 1) if type(event) is Failed else event


def silent_failure(event):
    return None if type(event) is Failed else event


MUTANTS = [
    ("examples", WrongRole),
    ("examples", Remembers),
    ("total decode", LeaksKeyError),
    ("total decode", EmptyErrorBody),
    ("every error kind", UnmappedKind),
    ("every error kind", BlamesTheClient),
    ("faithful stream", with_reply(EmptyCallsDropped)),
    ("faithful stream", edited(shorter, when=lambda call: call.output.stream)),
    ("deterministic", with_reply(Counted)),
    ("unary equals streamed", edited(shorter, when=is_unary)),
    ("unary equals streamed", edited(always_stop, when=is_unary)),
    ("isolation", with_reply(CountedAnew)),
    ("isolation", with_reply(SharedLines)),
    ("nothing after the end", with_reply(Unchecked)),
    ("declared losses only", edited(no_matched, when=lambda call: call.output.stream)),
    ("declared losses only", edited(no_cached, when=lambda call: call.output.stream)),
    ("declared losses only", edited(no_reasoning(), when=lambda call: call.output.stream)),
    ("failure ends the wire", edited(fake_ending)),
    ("failure ends the wire", edited(silent_failure)),
    ("saved state", with_reply(NothingSaved)),
    ("saved state", with_reply(Hoards)),
]
