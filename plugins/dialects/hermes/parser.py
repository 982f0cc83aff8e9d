"""Reads Hermes-style answers: <think> blocks, then text, with JSON tool calls in <tool_call> tags.

Reasoning is recognised at the start of the answer only, or where its marker is a special token. A
call ends with its JSON, whatever its strings spell. White space around calls is no text. One run of
newlines next to a reasoning marker or behind a call, and one newline before a call, belong to the
markers. Knows no tokenizer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from tokenwire.core.events import PartDelta
from tokenwire.core.ports.dialect import Parser, ParserSetup, PartEvent
from tokenwire.core.prompt import Phase, Piece
from tokenwire.plugins.dialects._shared.emitter import Emitter
from tokenwire.plugins.dialects._shared.tags import PARTIAL, Tags
from tokenwire.plugins.dialects.hermes.call import CallReader, Outcome
from tokenwire.plugins.dialects.hermes.draft import Verdict, judge

__all__ = ("CALL", "CALL_END", "THINK", "THINK_END", "HermesParser")

THINK, THINK_END = "<think>", "</think>"
CALL, CALL_END = "<tool_call>", "</tool_call>"
MAX_BLANK: Final = 256
"""White space held before it is certain to be text."""
BETWEEN: Final = " \t\r\n,[]}"
"""What may stand between the calls of one tag."""
OPENING: Final = {
    (thinks, calls): Tags([*(THINK, THINK_END) * thinks, *(CALL,) * calls])
    for thinks in (False, True)
    for calls in (False, True)
}
LATER: Final = {calls: Tags((CALL,) * calls) for calls in (False, True)}
REASONING: Final = {calls: Tags((THINK_END, *(CALL,) * calls)) for calls in (False, True)}
CALLS: Final = Tags((CALL, CALL_END))
AGAIN: Final = Tags((THINK,))
PHASES: Final[dict[str, Phase]] = {
    "text": "content", "reasoning": "reasoning", "draft": "reasoning",
    "call": "tool_call", "after": "tool_call",
}  # fmt: skip


@final
class HermesParser(Parser):
    """States: text, reasoning, draft (a call in open reasoning), call, after (behind its JSON).

    A step takes the buffer from an index and gives the next one; it sets `_waits` where it needs
    more text to decide, and then the rest of the buffer is held.
    """

    def __init__(self, setup: ParserSetup, *, thinks: bool = True) -> None:
        self._choice = setup.choice
        self._thinks = thinks
        self._reasons = thinks and setup.reasoning
        self._calls = setup.parse_tools
        self._emit = Emitter(setup.choice)
        self._reader: CallReader | None = None
        self._state = "reasoning" if self._reasons and setup.phase == "reasoning" else "text"
        self._is_opening = True  # nothing but white space has come
        self._trims = self._state == "reasoning"  # newlines that come now belong to a marker
        self._had_call = False
        self._waits = False
        self._blank = ""  # white space that may turn out to belong to a marker
        self._held = ""  # the beginning of a marker, or a draft
        self._read = 0  # raw characters that came
        self._fast = ""  # the state, when text without a sign of its end can go straight out
        self.phase: Phase = PHASES[self._state]

    def push(self, piece: Piece) -> Sequence[PartEvent]:
        text = piece.text
        if self._fast and not piece.special:
            if self._fast == "call":
                is_plain = '"' not in text and "\\" not in text
            else:
                is_plain = "<" not in text and text[-1:] != "\n"
            if is_plain:
                if not text:
                    return ()
                self._read = end = self._read + len(text)
                return (PartDelta(self._choice, text, end),)
        return self._push(piece)

    def flush(self) -> Sequence[PartEvent]:
        self._hold(self._held, is_final=True)
        if self._reader is not None:
            self._truncate(self._reader)
        blank, self._blank = self._blank, ""
        kind = self._emit.is_open
        if kind == "text" or (not kind and not self._had_call and self._state == "text"):
            self._emit.text("text", blank, self._read)
        self._emit.close()
        return self._settle()

    def _push(self, piece: Piece) -> Sequence[PartEvent]:
        text = piece.text
        if piece.special and not self._is_marker(text):
            if self._state != "draft":
                self._hold(self._held, is_final=True)
            self._read += len(text)
            return self._settle()
        if piece.special and text in (THINK, THINK_END) and self._state in ("text", "after"):
            self._hold(self._held, is_final=True)
            self._read += len(text)
            self._state = "text"
            self._turn(text)
            return self._settle()
        self._read += len(text)
        self._hold(self._held + text)
        return self._settle()

    def _is_marker(self, text: str) -> bool:
        return text in (CALL, CALL_END) or (self._thinks and text in (THINK, THINK_END))

    def _settle(self) -> Sequence[PartEvent]:
        if self._held or self._blank or self._is_opening:
            self._fast = ""
        elif self._reader is not None:
            self._fast = "call" if self._reader.is_in_argument_string else ""
        else:
            self._fast = self._state if self._state == self._emit.is_open else ""
        self.phase = PHASES[self._state]
        return self._emit.take()

    def _hold(self, buffer: str, *, is_final: bool = False) -> None:
        """Take steps through `buffer`, and hold what has to wait for more."""
        at = 0
        self._waits = False
        while at < len(buffer) and not self._waits:
            at = self._step(buffer, at, is_final)
        self._held = buffer[at:]

    def _step(self, buffer: str, at: int, is_final: bool) -> int:
        match self._state:
            case "text":
                return self._text(buffer, at, is_final)
            case "reasoning":
                return self._reasoning(buffer, at, is_final)
            case "draft":
                return self._draft(buffer, at, is_final)
            case "call":
                return self._call(buffer, at, is_final)
            case _:
                return self._after(buffer, at, is_final)

    def _end(self, buffer: str, at: int) -> int:
        """How many raw characters had been read at `at`."""
        return self._read - len(buffer) + at

    # Text.

    def _text(self, buffer: str, at: int, is_final: bool) -> int:
        if self._is_opening and buffer[at].isspace():
            first = at
            while first < len(buffer) and buffer[first].isspace():
                first += 1
            self._say(buffer[at:first], self._end(buffer, first))
            return first
        tags = OPENING[self._thinks, self._calls] if self._is_opening else LATER[self._calls]
        found, marker = tags.find(buffer, at, is_final=is_final)
        if found > at:
            if self._is_opening:
                # The first visible character: from here on <think> is text.
                self._is_opening = False
                return at
            self._say(buffer[at:found], self._end(buffer, found))
            return found
        if marker == PARTIAL:
            self._waits = True
            return at
        self._turn(marker)
        return at + len(marker)

    def _turn(self, marker: str) -> None:
        """A marker in text: into a call, into reasoning, or a stray end of reasoning."""
        self._trims = True
        if marker == CALL:
            self._begin_call(CALL)
            return
        self._blank = ""
        if marker == THINK and self._reasons:
            self._emit.close()
            self._state, self._is_opening = "reasoning", False

    def _say(self, text: str, end: int) -> None:
        """Visible text, but for white space that may belong to a marker."""
        if self._trims:
            text = text.lstrip("\n")
            if not text:
                return
            self._trims = False
        text, self._blank = self._blank + text, ""
        may_be_blank = self._emit.is_open != "text" and (self._calls or self._is_opening)
        if may_be_blank and text.isspace() and len(text) <= MAX_BLANK:
            self._blank = text
            return
        if self._calls and text[-1] == "\n":
            text, self._blank, end = text[:-1], "\n", end - 1
        self._emit.text("text", text, end)

    # Reasoning.

    def _reasoning(self, buffer: str, at: int, is_final: bool) -> int:
        if self._is_opening:
            if buffer[at] == "\n":
                return at + 1
            # The prompt has opened the block; a model may open it once more.
            marker = AGAIN.at(buffer, at, is_final=is_final)
            self._waits = marker == PARTIAL
            if marker:
                self._is_opening = self._waits
                return at if self._waits else at + len(marker)
        found, marker = REASONING[self._calls].find(buffer, at, is_final=is_final)
        if found > at:
            self._think(buffer[at:found], self._end(buffer, found))
            return found
        if marker == PARTIAL:
            self._waits = True
            return at
        if marker == CALL:
            self._state = "draft"
            return at
        self._close_reasoning()
        return at + len(marker)

    def _think(self, text: str, end: int) -> None:
        self._is_opening = False
        if self._trims:
            text = text.lstrip("\n")
            if not text:
                return
            self._trims = False
        text = self._blank + text
        newlines = len(text) - len(text.rstrip("\n"))
        kept = len(text) - min(newlines, MAX_BLANK)
        self._blank = text[kept:]
        self._emit.text("reasoning", text[:kept], end - len(self._blank))

    def _close_reasoning(self) -> None:
        self._emit.close()
        self._state, self._blank, self._trims, self._is_opening = "text", "", True, False

    def _draft(self, buffer: str, at: int, is_final: bool) -> int:
        verdict, stop = judge(buffer[at:], CALL, CALL_END, THINK_END)
        if verdict is Verdict.DRAFT:
            self._think(buffer[at : at + stop], self._end(buffer, at + stop))
            self._state = "reasoning"
            return at + stop
        if verdict is Verdict.CALL or is_final:
            self._close_reasoning()
        else:
            self._waits = True
        return at

    # Calls.

    def _begin_call(self, held: str) -> None:
        self._reader, self._state = CallReader(held), "call"

    def _call(self, buffer: str, at: int, is_final: bool) -> int:
        reader = self._reader
        assert reader is not None
        base = self._end(buffer, 0)
        at, outcome = reader.feed(buffer, at, base, self._emit)
        if outcome is Outcome.ANGLE:
            marker = CALLS.at(buffer, at, is_final=is_final)
            if marker == PARTIAL:
                self._waits = True
            elif not marker:
                at, outcome = reader.skip_angle(at, base, self._emit)
            elif marker == CALL and reader.is_empty:
                reader.held += marker
                at += len(marker)
            else:
                outcome = Outcome.BROKEN
        if reader.is_started:
            self._blank, self._had_call, self._is_opening = "", True, False
        if outcome is Outcome.DONE:
            self._reader, self._state = None, "after"
        elif outcome is Outcome.BROKEN:
            self._break_off(reader, self._end(buffer, at))
        return at

    def _break_off(self, reader: CallReader, end: int) -> None:
        """The call cannot go on: what was announced ends, what was not is text."""
        self._reader = None
        if reader.is_started:
            self._emit.close(is_complete=reader.is_whole)
            self._state = "after"
        else:
            self._state, self._is_opening, self._trims = "text", False, False
            self._say(reader.held, end)

    def _truncate(self, reader: CallReader) -> None:
        """The answer ends in the call. Without a name there is nothing that could be sent."""
        self._reader, self._state = None, "after"
        if reader.is_started:
            self._emit.close(is_complete=reader.is_whole)
        self._had_call = True

    def _after(self, buffer: str, at: int, is_final: bool) -> int:
        if buffer[at] in BETWEEN:
            return at + 1
        if buffer[at] == "{":
            self._begin_call("")
            return at
        marker = CALLS.at(buffer, at, is_final=is_final)
        if marker == PARTIAL:
            self._waits = True
            return at
        self._state, self._trims = "text", True
        if marker == CALL:
            self._begin_call(CALL)
        return at + len(marker)

    # State.

    def save(self) -> object:
        return [
            self._state, self._is_opening, self._trims, self._had_call, self._blank, self._held,
            self._read, self._emit.is_open, self._reader and self._reader.save(),
        ]  # fmt: skip

    def restore(self, state: object) -> None:
        (
            self._state, self._is_opening, self._trims, self._had_call, self._blank, self._held,
            self._read, self._emit.is_open, call,
        ) = state  # type: ignore[misc]  # fmt: skip
        self._reader = None
        if call is not None:
            self._reader = CallReader("")
            self._reader.restore(call)
        self._settle()
