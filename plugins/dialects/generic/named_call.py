"""Reads a call whose name stood in its opening anchor. Knows where it ends from a closing anchor.

Arguments that are JSON go out as they were written, while they come; others when they are whole.
"""

from __future__ import annotations

from typing import Final, final

import msgspec
from msgspec import Struct

from tokenwire.core.dialogue import ToolSpec
from tokenwire.plugins.dialects._shared.argument_body import ArgumentBody, BodyState
from tokenwire.plugins.dialects._shared.call_reader import CallReader, Outcome
from tokenwire.plugins.dialects._shared.emitter import Emitter
from tokenwire.plugins.dialects.generic.anchor import Anchor
from tokenwire.plugins.dialects.generic.body import Body, arguments_of

__all__ = ("NamedCall",)

MAX_BODY: Final = 1_048_576
"""Characters of arguments that are read as a whole."""


class _State(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    name: str
    held: str
    body: str
    is_started: bool
    is_whole: bool
    json: BodyState


@final
class NamedCall(CallReader):
    """`body`: how the arguments are written; None for JSON."""

    kind = "named"

    def __init__(
        self, name: str, tools: tuple[ToolSpec, ...], close: Anchor | None, body: Body | None
    ) -> None:
        self._name = name
        self._tools = tools
        self._close = close
        self._body = body
        self._text = ""
        self._json = ArgumentBody()
        self.held = ""
        self.is_started = False
        self.is_whole = False

    @property
    def plain_until(self) -> str:
        return '"\\' if self.is_started and self._json.is_in_string else ""

    def feed(
        self, text: str, at: int, base: int, emit: Emitter, *, is_final: bool
    ) -> tuple[int, Outcome]:
        if not self._name:
            return at, Outcome.BROKEN
        if self._body is not None:
            return self._whole(text, at, base, emit, is_final=is_final)
        if not self.is_started:
            emit.start_call(self._name)
            self.is_started, self.held = True, ""
        while at < len(text):
            found = None
            if not self._json.is_in_string and self._json.mode != "over" and self._close:
                found = self._close.find(text, at, is_final=is_final)
            if found is not None and found.start == at:
                if found.is_pending:
                    return at, Outcome.MORE
                self._end(base + at, emit)
                return at, Outcome.DONE
            limit = len(text) if found is None else found.start
            end = self._json.feed(text[:limit], at, base, emit)
            if self._json.mode == "over":
                self._end(base + end, emit)
                return end, Outcome.DONE
            at = self._json.skip(end, base, emit) if end < limit else end
        return at, Outcome.MORE

    def _end(self, end: int, emit: Emitter) -> None:
        self._json.close(end, emit, is_marked=True)
        self.is_whole = True

    def _whole(
        self, text: str, at: int, base: int, emit: Emitter, *, is_final: bool
    ) -> tuple[int, Outcome]:
        found = self._close.find(text, at, is_final=is_final) if self._close else None
        end = len(text) if found is None else found.start
        end = min(end, at + MAX_BODY - len(self._text))
        self._text += text[at:end]
        self.held += text[at:end]
        if len(self._text) >= MAX_BODY:
            return end, Outcome.BROKEN
        if found is None or found.is_pending:
            return end, Outcome.MORE
        if not self._give(base + end, emit):
            self.held += text[end : found.end]
            return found.end, Outcome.BROKEN
        emit.close()
        return end, Outcome.DONE

    def _give(self, end: int, emit: Emitter) -> bool:
        assert self._body is not None
        arguments = arguments_of(self._text, self._body, self._name, self._tools)
        if arguments is None:
            return False
        emit.start_call(self._name)
        emit.arguments(arguments, end)
        self.is_started = self.is_whole = True
        return True

    def stop(self, end: int, emit: Emitter) -> None:
        if self._body is None or not self._name:
            return
        if self._close is not None or not self._give(end, emit):
            emit.start_call(self._name)
            self.is_started = True

    def save(self) -> object:
        return msgspec.to_builtins(_State(
            self._name, self.held, self._text, self.is_started, self.is_whole, self._json.save()
        ))  # fmt: skip

    def restore(self, state: object) -> None:
        was = msgspec.convert(state, _State)
        self._name, self.held, self._text = was.name, was.held, was.body
        self.is_started, self.is_whole = was.is_started, was.is_whole
        self._json = ArgumentBody.restored(was.json)
