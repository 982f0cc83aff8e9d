"""One choice's ids to events: detokenize, parse, stop, count. Pure; knows no protocol, no engine.

Its state can be saved after any id and restored in a fresh decoder of the same setup; what follows
is the same to the byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tokenwire.core.custom_calls import FreeInput, FreeInputState
from tokenwire.core.detokenizer import Detokenizer, PieceTable
from tokenwire.core.echo import described
from tokenwire.core.events import (
    Event,
    Finished,
    FinishReason,
    Logprobs,
    PartDelta,
    PartEnd,
    PartKind,
    PartStart,
)
from tokenwire.core.logprob_ledger import LogprobLedger
from tokenwire.core.ports.dialect import Parser, PartEvent
from tokenwire.core.ports.tokenizer import Tokenizer
from tokenwire.core.prompt import Piece
from tokenwire.core.stops import StopStrings
from tokenwire.core.tokens import Finish, FinishCause, FinishKind, IdLogprobs

__all__ = ("Decoder", "DecoderSetup")


class DecoderSetup(Struct, frozen=True):
    """What all choices of a call have in common."""

    tokenizer: Tokenizer
    pieces: PieceTable
    stops: tuple[str, ...] = ()
    include_stop: bool = False
    stop_spellings: Mapping[int, str] = {}
    """Stop ids that stand for a stop string of the client's."""
    logprobs: bool = False
    parallel_calls: bool = True
    custom_tools: frozenset[str] = frozenset()
    """Names of tools that take free text, and were offered as functions (`custom_calls`)."""


class DecoderState(Struct, frozen=True, array_like=True):
    """A decoder between two ids."""

    detokenizer: Any
    parser: Any
    kind: PartKind | None
    calls: int
    generated: int
    reasoning_tokens: int
    stopped: str | None
    held: str
    logprobs: Any
    free: FreeInputState | None = None


@final
class Decoder:
    """`push` ids as they come, then `finish` once. `stopped` tells that no more ids are wanted."""

    __slots__ = (
        "_calls",
        "_detokenizer",
        "_free",
        "_is_simple",
        "_kind",
        "_ledger",
        "_parser",
        "_setup",
        "_stops",
        "choice",
        "generated",
        "reasoning_tokens",
        "stopped",
    )

    def __init__(self, setup: DecoderSetup, choice: int, parser: Parser) -> None:
        self.choice = choice
        self.generated = 0
        """Tokens that count: up to the one that completed a stop string."""
        self.reasoning_tokens = 0
        self.stopped: str | None = None
        """The stop string found, or "" when the answer was ended for another reason of ours."""
        self._setup = setup
        self._parser = parser
        self._detokenizer = Detokenizer(setup.pieces)
        self._stops = StopStrings(setup.stops, include=setup.include_stop) if setup.stops else None
        self._ledger = LogprobLedger() if setup.logprobs else None
        self._is_simple = not (setup.stops or setup.logprobs or setup.custom_tools)
        """Nobody watches the text or asks which token it is of."""
        self._kind: PartKind | None = None
        self._calls = 0
        self._free: FreeInput | None = None

    def push(self, ids: Sequence[int], logprobs: Sequence[IdLogprobs] = ()) -> list[Event]:
        """The events that these ids make certain. Ids after a stop are not taken."""
        if self._is_simple:
            return self._push_simply(ids)
        out: list[Event] = []
        parser, detokenizer = self._parser, self._detokenizer
        for index, id in enumerate(ids):
            if self.stopped is not None:
                break
            self.generated += 1
            if parser.phase == "reasoning":
                self.reasoning_tokens += 1
            piece = detokenizer.push(id)
            if self._ledger is not None and logprobs:
                self._ledger.add(logprobs[index], len(piece.text))
            if not piece.text:
                continue
            if piece.special and self._stops is not None and self._halts(piece.text):
                self._halt(piece.text, out)
                break
            self._take(parser.push(piece), out)
        return out

    def _push_simply(self, ids: Sequence[int]) -> list[Event]:
        out: list[Event] = []
        if self.stopped is not None:
            return out
        parser = self._parser
        push = parser.push
        for piece in self._detokenizer.pieces(ids):
            self.generated += 1
            if parser.phase == "reasoning":
                self.reasoning_tokens += 1
            if not piece.text:
                continue
            events = push(piece)
            if len(events) == 1 and type(events[0]) is PartDelta:
                out.append(events[0])  # Why: nine pieces in ten, and nothing to look at.
            else:
                self._take(events, out)
                if self.stopped is not None:
                    break
        return out

    def push_text(self, text: str) -> list[Event]:
        """As `push`, for text whose ids nobody has; special tokens in it are what they spell."""
        out: list[Event] = []
        if text and self.stopped is None:
            self._take(self._parser.push(Piece(text)), out)
        return out

    def finish(self, finish: Finish) -> list[Event]:
        """Everything held back, the end of the open part, and Finished."""
        out: list[Event] = []
        if self.stopped is None:
            # Why no tail of the detokenizer: half a character is dropped, in every mode alike.
            self._take(self._parser.flush(), out)
        out.append(self._finished(finish))
        return out

    def save(self) -> object:
        state = DecoderState(
            detokenizer=self._detokenizer.save(),
            parser=self._parser.save(),
            kind=self._kind,
            calls=self._calls,
            generated=self.generated,
            reasoning_tokens=self.reasoning_tokens,
            stopped=self.stopped,
            held=self._stops.held if self._stops else "",
            logprobs=self._ledger.save() if self._ledger else None,
            free=self._free.save() if self._free is not None else None,
        )
        return msgspec.to_builtins(state, builtin_types=(bytes,))

    def restore(self, state: object) -> None:
        """Raises msgspec.ValidationError for what is no decoder's state."""
        saved = msgspec.convert(state, DecoderState)
        self._detokenizer.restore(saved.detokenizer)
        self._parser.restore(saved.parser)
        self._kind, self._calls = saved.kind, saved.calls
        self.generated, self.reasoning_tokens = saved.generated, saved.reasoning_tokens
        self.stopped = saved.stopped
        if self._stops:
            self._stops.restore(saved.held)
        if self._ledger:
            self._ledger.restore(saved.logprobs)
        self._free = None
        if saved.free is not None:
            self._free = FreeInput()
            self._free.restore(saved.free)

    # --- parts -----------------------------------------------------------------------------------

    def _take(self, events: Iterable[PartEvent], out: list[Event]) -> None:
        """Pass parts on through stop strings and logprobs, until the answer ends."""
        for event in events:
            if self.stopped is not None:
                return
            match event:
                case PartStart():
                    self._start(event, out)
                case PartDelta():
                    self._delta(event, out)
                case PartEnd():
                    self._end(event, out)

    def _start(self, event: PartStart, out: list[Event]) -> None:
        if event.kind == "tool_call" and self._calls and not self._setup.parallel_calls:
            self.stopped = ""  # Why: the client allows one call an answer, and has it.
            return
        self._kind = event.kind
        if event.name in self._setup.custom_tools and not event.custom:
            self._free = FreeInput()
            event = replace(event, custom=True)
        out.append(event)

    def _end(self, event: PartEnd, out: list[Event]) -> None:
        if self._kind == "text" and self._stops is not None:
            self._emit(self._stops.flush(), out)
        elif self._kind == "tool_call":
            self._calls += event.complete
            if self._free is not None and (text := self._free.flush()):
                out.append(PartDelta(self.choice, text))
            self._free = None
        self._kind = None
        out.append(event)

    def _delta(self, event: PartDelta, out: list[Event]) -> None:
        visible = self._kind == "text"
        if self._ledger is not None:
            self._ledger.read(event.end, len(event.text), visible=visible)
        if not visible:
            if self._free is None:
                out.append(event)
            elif text := self._free.push(event.text):
                out.append(PartDelta(self.choice, text, event.end))
        elif self._stops is None:
            self._emit(event.text, out)
        else:
            result = self._stops.push(event.text)
            self._emit(result.text, out)
            if result.matched is not None:
                self.stopped, self._kind = result.matched, None
                out.append(PartEnd(self.choice))

    def _emit(self, text: str, out: list[Event]) -> None:
        if not text:
            return
        if self._ledger is not None:
            tokens = self._ledger.emit(len(text))
            if tokens:
                out.append(
                    Logprobs(
                        self.choice,
                        tuple(described(self._setup.tokenizer, entry) for entry in tokens),
                    )
                )
        out.append(PartDelta(self.choice, text))

    def _halts(self, special: str) -> bool:
        """Whether a special token spells a stop string, where the answer would be visible.

        Why: parsers drop the text of special tokens, and the engine may not have known the id.
        """
        return special in self._setup.stops and self._parser.phase == "content"

    def _halt(self, stop: str, out: list[Event]) -> None:
        self._take(self._parser.flush(), out)
        if self.stopped is not None:
            return
        self.stopped = stop
        if self._setup.include_stop:
            start, delta = PartStart(self.choice, "text"), PartDelta(self.choice, stop)
            out += [start, delta, PartEnd(self.choice)]

    def _finished(self, finish: Finish) -> Finished:
        reason: FinishReason
        matched: str | None = None
        if self.stopped is not None:
            reason = "stop_sequence" if self.stopped else "tool_calls"
            matched = self.stopped or None
        elif finish.kind is FinishKind.LENGTH:
            reason = "context_length" if finish.cause is FinishCause.CONTEXT else "length"
        elif finish.kind is FinishKind.ABORT:
            reason = "cancelled"
        else:
            spelled = [self._setup.stop_spellings.get(id) for id in finish.matched]
            matched = next((text for text in spelled if text is not None), None)
            if matched is not None:
                reason = "stop_sequence"
            else:
                reason = "tool_calls" if self._calls else "stop"
        return Finished(self.choice, reason, matched)
