"""Reads the arguments of a call whose name is known: a JSON value, as it is written. No markers.

Text that begins no JSON value goes out as it stands, for tools that take code or words. None, or
null, is `{}`. Nothing is repaired.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, final

from msgspec import Struct

from tokenwire.plugins.dialects._shared.emitter import Emitter
from tokenwire.plugins.dialects._shared.json_stream import CursorState, JsonCursor

__all__ = ("ArgumentBody", "BodyState")

Mode: TypeAlias = Literal["before", "json", "raw", "over"]
BLANK: Final = " \t\r\n"
NULL: Final = "null"


class BodyState(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """As msgspec's `convert` gives it back."""

    mode: Mode
    word: str
    cursor: CursorState


@final
class ArgumentBody:
    """`feed` it until `mode` is "over"; then, or at a marker or the end, `close` it once."""

    __slots__ = ("_cursor", "_word", "mode")

    def __init__(self) -> None:
        self.mode: Mode = "before"
        self._word = ""  # what may yet be null
        self._cursor = JsonCursor()

    @property
    def is_in_string(self) -> bool:
        """Whether text up to the next quote or backslash goes out as it comes."""
        return self.mode == "json" and self._cursor.in_string and not self._cursor.is_escaped

    def feed(self, text: str, at: int, base: int, emit: Emitter) -> int:
        """Where it stopped: behind the value, at a `<` outside JSON strings (which may begin a
        marker; `skip` goes over it), or at the text's end. `base`: raw characters before `text`."""
        if self.mode == "before":
            while at < len(text) and text[at] in BLANK:
                at += 1
            if at == len(text) or text[at] == "<":
                return at
            self.mode = "json" if text[at] in '{["' else "raw"
        if self.mode == "raw":
            end = text.find("<", at)
            end = len(text) if end < 0 else end
            self._raw(text[at:end], base + end, emit)
            return end
        end = self._cursor.feed(text, at)
        emit.arguments(text[at:end], base + end)
        if self._cursor.is_over:
            self.mode = "over"
        return end

    def skip(self, at: int, base: int, emit: Emitter) -> int:
        """The `<` at `at` begins no marker."""
        if self.mode == "before":
            self.mode = "raw"
        if self.mode == "raw":
            self._raw("<", base + at + 1, emit)
        else:
            emit.arguments("<", base + at + 1)
        return at + 1

    def _raw(self, text: str, end: int, emit: Emitter) -> None:
        if self._word or text[:1] == "n":
            self._word += text
            if NULL.startswith(self._word.rstrip()):
                return
            text, self._word = self._word, ""
        emit.arguments(text, end)

    def close(self, end: int, emit: Emitter, *, is_marked: bool) -> None:
        """Ends the call. `is_marked`: the model ended it; else the answer did."""
        word, self._word = self._word, ""
        is_nothing = self.mode == "before" or word.rstrip() == NULL
        if is_nothing and is_marked:
            emit.arguments("{}", end)
        elif not is_nothing:
            emit.arguments(word, end)
        is_whole = self.mode == "over" or (self.mode != "json" and is_marked)
        emit.close(is_complete=is_whole)

    def save(self) -> BodyState:
        return BodyState(self.mode, self._word, self._cursor.save())

    @classmethod
    def restored(cls, state: BodyState) -> ArgumentBody:
        body = cls()
        body.mode, body._word = state.mode, state.word
        body._cursor.restore(state.cursor)
        return body
