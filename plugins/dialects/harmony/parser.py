"""Reads harmony answers: messages on channels, of which some are addressed to tools.

The prompt ends behind `<|start|>assistant`, so an answer begins inside a header. What has no header
is text, and so is a message on a channel that nobody knows; no garbled header loses text. Once a
marker has come as a special token, only special tokens are markers. Knows no tokenizer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, final

import msgspec

from tokenwire.core.events import PartDelta
from tokenwire.core.ports.dialect import Parser, ParserSetup, PartEvent
from tokenwire.core.prompt import Phase, Piece
from tokenwire.plugins.dialects._shared.argument_body import ArgumentBody
from tokenwire.plugins.dialects._shared.emitter import Emitter
from tokenwire.plugins.dialects._shared.tags import NO_MARKER, PARTIAL
from tokenwire.plugins.dialects.harmony.header import (
    ASSISTANT,
    MAX_HEADER,
    channel_of,
    is_cut_call,
    may_lead,
    recipient_of,
    strays,
)
from tokenwire.plugins.dialects.harmony.markers import (
    ALL,
    CHANNEL,
    CONSTRAIN,
    MESSAGE,
    START,
    TAGS,
)
from tokenwire.plugins.dialects.harmony.state import ParserState, State

__all__ = ("HarmonyParser",)

FUNCTIONS: Final = "functions."
PHASES: Final[dict[State, Phase]] = {
    "lead": "content", "header": "content", "text": "content", "reasoning": "reasoning",
    "call": "tool_call", "after": "tool_call",
}  # fmt: skip


@final
class HarmonyParser(Parser):
    """`_header` holds a header, markers included, or in `lead` what may become one."""

    def __init__(self, setup: ParserSetup) -> None:
        self._choice = setup.choice
        self._calls = setup.parse_tools
        self._tools = frozenset(tool.name for tool in setup.tools)
        self._emit = Emitter(setup.choice)
        self._state: State = "reasoning" if setup.phase == "reasoning" else "lead"
        self._header = ""
        self._body: ArgumentBody | None = None
        self._has_begun = False  # a marker has come
        self._is_tokenised = False
        self._held = ""  # the beginning of a marker
        self._read = 0  # raw characters that came
        self._fast = ""  # the state, when text without a sign of its end can go straight out
        self.phase: Phase = PHASES[self._state]

    def push(self, piece: Piece) -> Sequence[PartEvent]:
        text = piece.text
        if self._fast and not piece.special:
            if self._fast == "call":
                is_plain = '"' not in text and "\\" not in text
            else:
                is_plain = self._is_tokenised or "<" not in text
            if is_plain:
                if not text:
                    return ()
                self._read = end = self._read + len(text)
                return (PartDelta(self._choice, text, end),)
        if piece.special:
            self._hold(self._held, is_final=True)
            self._read += len(text)
            if text in ALL:
                self._is_tokenised = True
                self._mark(text, self._read)
        else:
            self._read += len(text)
            self._hold(self._held + text)
        return self._settle()

    def flush(self) -> Sequence[PartEvent]:
        if self._has_begun and self._state in ("lead", "header") and self._held[1:]:
            self._held = ""  # a marker that was cut
        self._hold(self._held, is_final=True)
        if self._state in ("lead", "header"):
            self._abandon(self._read, is_last=True)
        self._end_message(self._read, is_marked=False)
        self._state = "lead"
        return self._settle()

    def _settle(self) -> Sequence[PartEvent]:
        if self._held:
            self._fast = ""
        elif self._body is not None:
            self._fast = "call" if self._body.is_in_string else ""
        else:
            self._fast = self._state if self._state == self._emit.is_open else ""
        self.phase = PHASES[self._state]
        return self._emit.take()

    def _hold(self, buffer: str, *, is_final: bool = False) -> None:
        """Take steps through `buffer`, and hold what may be the beginning of a marker."""
        base = self._read - len(buffer)
        at = 0
        while at < len(buffer):
            if self._body is not None:
                at = self._body.feed(buffer, at, base, self._emit)
                found, marker = at, self._marker_at(buffer, at, is_final)
                if self._body.mode == "over":
                    self._end_message(base + at, is_marked=True)
                    self._state = "after"
                    continue
                if at < len(buffer) and marker == NO_MARKER:
                    at = self._body.skip(at, base, self._emit)
            else:
                found, marker = self._find(buffer, at, is_final)
                if found > at:
                    self._say(buffer[at:found], base + found)
                    at = found
            if marker == PARTIAL:
                break
            if marker:
                at += len(marker)
                self._mark(marker, base + at)
        self._held = buffer[at:]

    def _marker_at(self, buffer: str, at: int, is_final: bool) -> str:
        if self._is_tokenised or at >= len(buffer):
            return NO_MARKER
        return TAGS.at(buffer, at, is_final=is_final)

    def _find(self, buffer: str, at: int, is_final: bool) -> tuple[int, str]:
        if self._is_tokenised:
            return len(buffer), NO_MARKER
        return TAGS.find(buffer, at, is_final=is_final)

    def _say(self, text: str, end: int) -> None:
        """Text without markers."""
        match self._state:
            case "header":
                self._header += text
                if len(self._header) > MAX_HEADER:
                    # Why cut: what is read as a header must not depend on how the text was cut.
                    rest = self._header[MAX_HEADER:]
                    self._header = self._header[:MAX_HEADER]
                    self._state = self._abandon(end - len(rest))
                    self._emit.text(self._state, rest, end)
            case "lead":
                self._header += text
                if not may_lead(self._header):
                    self._emit.text("text", self._header, end)
                    self._header, self._state = "", "text"
            case "after":
                text = text.lstrip()
                if text:
                    self._emit.text("text", text, end)
                    self._state = "text"
            case "reasoning":
                self._emit.text("reasoning", text, end)
            case _:
                self._emit.text("text", text, end)

    def _mark(self, marker: str, end: int) -> None:
        """A marker: into a header or a message, or out of one. One that has no sense is dropped."""
        is_header = self._state in ("lead", "header")
        self._has_begun = True
        if marker in (MESSAGE, CONSTRAIN) and not is_header:
            if self._body is not None:
                # Why: without the marker the arguments would be others than were written.
                self._end_message(end, is_marked=False)
                self._state = "after"
        elif marker == MESSAGE:
            self._begin_message()
        elif is_header and marker in (CHANNEL, CONSTRAIN):
            self._header += marker
            self._state = "header"
        else:
            if is_header:
                self._abandon(end - len(marker))
            self._end_message(end, is_marked=True)
            self._header = CHANNEL if marker == CHANNEL else ""
            self._state = "header" if marker in (START, CHANNEL) else "lead"

    def _begin_message(self) -> None:
        recipient, channel = recipient_of(self._header), channel_of(self._header)
        self._header = ""
        name = self._tool(recipient)
        if name and self._calls:
            self._emit.start_call(name)
            self._body, self._state = ArgumentBody(), "call"
        elif channel == "analysis" or (recipient and not name):
            # Why: what is said to a tool that nobody has offered is not said to the user.
            self._state = "reasoning"
        else:
            self._state = "text"

    def _tool(self, recipient: str) -> str:
        """The tool that a recipient names; "" for none."""
        if recipient.startswith(FUNCTIONS):
            return recipient[len(FUNCTIONS) :]
        return recipient if recipient in self._tools else ""

    def _end_message(self, end: int, *, is_marked: bool) -> None:
        if self._body is not None:
            self._body.close(end, self._emit, is_marked=is_marked)
            self._body = None
        self._emit.close()

    def _abandon(self, end: int, *, is_last: bool = False) -> Literal["text", "reasoning"]:
        """No message follows this header: what it says beside a header's words is text, of the
        kind that is returned. `end`: raw characters up to the header's end."""
        header, self._header = self._header, ""
        if self._state == "lead":
            if not self._is_empty_lead(header, is_last=is_last):
                self._emit.text("text", header, end)
            return "text"
        kind: Literal["text", "reasoning"] = "text"
        if channel_of(header) == "analysis":
            kind = "reasoning"
        for text, behind in strays(header, is_last=is_last):
            self._emit.text(kind, text, end - len(header) + behind)
        return kind

    def _is_empty_lead(self, lead: str, *, is_last: bool) -> bool:
        if is_last and not self._has_begun:
            return self._calls and is_cut_call(lead)
        return lead.strip() in ("", ASSISTANT) or (self._calls and is_cut_call(lead))

    def save(self) -> object:
        body = None if self._body is None else self._body.save()
        return msgspec.to_builtins(ParserState(
            self._state, self._header, self._has_begun, self._is_tokenised, self._held, self._read,
            self._emit.is_open, body,
        ))  # fmt: skip

    def restore(self, state: object) -> None:
        was = msgspec.convert(state, ParserState)
        self._state, self._header = was.state, was.header
        self._has_begun, self._is_tokenised = was.has_begun, was.is_tokenised
        self._held, self._read, self._emit.is_open = was.held, was.read, was.is_open
        self._body = None if was.body is None else ArgumentBody.restored(was.body)
        self._settle()
