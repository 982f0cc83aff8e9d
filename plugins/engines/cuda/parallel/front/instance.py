"""One group of ranks: started, heard, ended as a whole, and started again after a while.

A rank that is lost takes the group with it: its jobs end at once, and say which rank and why. All
of this runs on the front's own loop. Knows no other group.
Argues its length: each state's answer to each thing that can happen stands here, and nowhere else.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal, Protocol, TypeAlias, final

from msgspec.structs import replace

from tokenwire.core.tokens import (
    Control,
    EngineCard,
    Finish,
    FinishCause,
    FinishKind,
    KvEvent,
    TokenDelta,
    TokenJob,
)
from tokenwire.plugins.engines.cuda.parallel.fallen import FellBack
from tokenwire.plugins.engines.cuda.parallel.frames import (
    Beat,
    Controls,
    Deltas,
    Enter,
    Events,
    Failed,
    Figures,
    FromRank,
    Hello,
    Instead,
    Listen,
    Progress,
    Stop,
    Wake,
)
from tokenwire.plugins.engines.cuda.parallel.front.launching import Launch, Launched
from tokenwire.plugins.engines.cuda.parallel.front.part import Part
from tokenwire.plugins.engines.cuda.parallel.front.waits import Backoff, Timer
from tokenwire.plugins.engines.cuda.parallel.front.watch import Watch
from tokenwire.plugins.engines.cuda.parallel.front.wire import Wire
from tokenwire.plugins.engines.cuda.parallel.front.words import Words
from tokenwire.plugins.engines.cuda.parallel.order import Order, write_order

__all__ = ("Instance", "News", "State")

LOG = logging.getLogger("tokenwire.engine.cuda")

State: TypeAlias = Literal["starting", "ready", "down", "ended"]

LAST_WORD_S: Final = 3.0
"""How long the front waits for the launcher's word on why a connection ended: it takes a tenth of
a second, and more on a machine that is busy."""
FAR_S: Final = 0.5
"""The same where the rank is another machine's, which the launcher here does not see."""
LOOK_S: Final = 0.05
STOP_S: Final = 25.0
"""How long a group that was told to stop may take: a leader's own grace, and a little."""
LEAVE_S: Final = 2.0
"""How long followers may take to end after their leaders."""
UNREAD_S: Final = 0.2
"""How long what a rank said last may take to be read."""


class News(Protocol):
    def deltas(self, batch: tuple[TokenDelta, ...]) -> None: ...

    def events(self, part: Part, events: Sequence[KvEvent]) -> None: ...

    def left(self, part: Part) -> None:
        """It is gone."""

    def moved(self, instance: Instance) -> None:
        """Its state or its progress is another."""

    def misfit(self, cards: Sequence[EngineCard]) -> str:
        """Why these cannot serve what the front has promised; "": they can."""
        ...


@final
class Instance:
    def __init__(self, order: Order, ranks: int, launch: Launch, folder: Path, news: News) -> None:
        """`ranks`: how many there are on all machines. `order`: without token and failure file."""
        self.index = order.instance
        self.ranks = ranks
        self.state: State = "starting"
        self.reason = "it is starting"
        """Why it is not ready."""
        self.parts: list[Part] = []
        self.starts = 0
        self.progress: dict[int, tuple[int, int]] = {}
        """Bytes that each rank has loaded, and its all."""
        self.restarts = False
        """Whether it starts again after it has failed."""
        self.fallen: FellBack | None = None
        """What shall start in its place."""
        self._order = order
        self._launch = launch
        self._folder = folder
        self._news = news
        self._loop = asyncio.get_running_loop()
        self._launched: Launched | None = None
        self._wires: dict[int, Wire] = {}
        self._hellos: dict[int, Hello] = {}
        self._wave = 0
        self._word = ""
        """Why it fails, as far as is known."""
        self._is_said = False
        """A rank said so itself."""
        self._token = ""
        self._timer = Timer(self._loop)
        self._watch = Watch(self._loop, order.settings.silence_timeout, self._muted)
        self._backoff = Backoff()
        self._words = Words(
            self.index,
            ranks,
            folder / f"failure-{self.index}",
            is_only=order.settings.instance_count == 1,
            nodes=order.settings.nodes,
        )
        self._is_stopping = False

    # --- its life ----------------------------------------------------------------------------

    def start(self) -> None:
        self.starts += 1
        # Why with what it ended of: a client asks now, and the reason is as true as a second ago.
        again = f"{self.reason}; it is starting again" if self.state == "down" else "it is starting"
        self.state, self.reason = "starting", again
        self._wires, self._hellos, self.parts = {}, {}, []
        self._wave, self._word, self._is_said, self.progress = 0, "", False, {}
        self._token = secrets.token_hex(32)
        path = self._folder / f"order-{self.index}"
        self._words.failure.unlink(missing_ok=True)
        order = self._order
        if self.restarts:
            # Why: it was judged when the server started, and has served since.
            order = replace(order, settings=replace(order.settings, wide_ep="warn"))
        write_order(replace(order, token=self._token, failure=str(self._words.failure)), path)
        loop, number = self._loop, self.starts

        def exited(code: int) -> None:
            # Why suppressed: where the loop has ended, nobody asks any more.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._exited, number, code)

        self._hush()
        try:
            self._launched = self._launch(path, exited)
        except OSError as error:
            self._fail(f"group {self.index}: its launcher cannot be started: {error}")
            return
        self._news.moved(self)

    def stop(self) -> None:
        """For good: what runs is aborted."""
        if self._is_stopping:
            return
        self._is_stopping = True
        if self.state == "ready":
            for part in self.parts:
                part.wire.send(Stop())
            self._timer.set(STOP_S, self._end)
        elif self._launched is not None:
            self._end()
        else:
            self._over()

    def abandon(self, sentence: str) -> None:
        """The loop is broken: end everything, as far as that goes."""
        self._is_stopping = True
        self._fail(sentence)

    def owns(self, enter: Enter) -> bool:
        """Whether a rank that enters is one of the processes that were started last."""
        return (
            self.state == "starting"
            and secrets.compare_digest(enter.token, self._token)
            and 0 <= enter.rank < self.ranks
            and enter.rank not in self._wires
        )

    def admit(self, wire: Wire) -> None:
        self._wires[wire.rank] = wire
        self._hush()

    # --- what its ranks say ------------------------------------------------------------------

    def heard(self, wire: Wire, frame: FromRank) -> None:
        if self._wires.get(wire.rank) is not wire:
            return
        match frame:
            case Deltas():
                part = self._part_of(wire)
                if part is not None and (batch := part.took(frame.batch)):
                    self._news.deltas(batch)
            case Figures():
                part = self._part_of(wire)
                if part is not None:
                    part.now = frame
                    part.figures = frame.figures or part.figures
            case Events():
                part = self._part_of(wire)
                if part is not None:
                    self._news.events(part, frame.events)
            case Progress():
                self.progress[wire.rank] = frame.done, frame.total
                self._hush()
                self._news.moved(self)
            case Hello():
                self._hellos[wire.rank] = frame
                self._hush()
                self._welcome()
            case Failed():
                self._suspect(wire.rank, self._words.said(wire.rank, frame.text), is_said=True)
            case Instead():
                self.fallen = FellBack(frame)
                self._fail(f"{frame.layout} shall start instead")
            case Enter() | Beat():
                pass

    def lost(self, wire: Wire) -> None:
        if self._wires.get(wire.rank) is not wire or self.state in ("down", "ended"):
            return
        if self._is_stopping:
            del self._wires[wire.rank]
            if not any(part.wire.rank in self._wires for part in self.parts):
                self._timer.set(LEAVE_S, self._end)
            return
        self._suspect(wire.rank, self._words.gone(wire.rank))

    # --- what it is given --------------------------------------------------------------------

    def submit(self, part: Part, jobs: Sequence[TokenJob]) -> None:
        """The jobs are in `part.jobs` already."""
        self._wave += 1
        late = part.send(self._wave, jobs)
        for other in self.parts:
            if other is not part:
                other.wire.send(Wake(self._wave))
        if late:
            self._news.deltas(tuple(late))

    def control(self, part: Part, frames: Sequence[Control]) -> None:
        part.wire.send(Controls(tuple(frames)))

    def listen(self) -> None:
        for part in self.parts:
            part.wire.send(Listen())

    # --- inside ------------------------------------------------------------------------------

    def _part_of(self, wire: Wire) -> Part | None:
        return next((part for part in self.parts if part.wire is wire), None)

    def _welcome(self) -> None:
        """All are ready, once all have said so."""
        if len(self._hellos) < self.ranks or self.state != "starting":
            return
        parts = []
        for rank, hello in sorted(self._hellos.items()):
            if hello.part is not None and hello.card is not None:
                key = self.index * self.ranks + hello.part
                parts.append(Part(key, self._wires[rank], hello, hello.card))
        misfit = self._news.misfit([part.card for part in parts])
        if misfit:
            self._fail(misfit)
            return
        self.parts = sorted(parts, key=lambda part: part.key)
        self.state, self.reason = "ready", ""
        self._backoff.ready(self._loop.time())
        self._timer.clear()
        self._watch.begin(self._wires)
        self._news.moved(self)

    def _exited(self, number: int, code: int) -> None:
        """All processes of a start have ended."""
        if number != self.starts:
            return
        self._launched = None
        if self._is_stopping:
            self._over()
            return
        if self.state == "down":
            self._again()
        else:
            # Why not at once: what a rank said last may not have been read yet.
            self._timer.set(
                UNREAD_S, lambda: self._fail(self._verdict(code) or self._words.ended(code))
            )

    def _fail(self, sentence: str) -> None:
        """End it as a whole, and everything that it ran."""
        if self.state in ("down", "ended"):
            return
        if not self._is_stopping and self.fallen is None:
            LOG.error("%s", sentence)
        self.state, self.reason = "down", sentence
        self._backoff.fail(self._loop.time())
        self._timer.clear()
        self._watch.clear()
        self._drop(Finish(FinishKind.ERROR, FinishCause.LOST, retryable=True, message=sentence))
        self._news.moved(self)
        if self._launched is not None:
            self._launched.end()
        else:
            self._again()

    def _drop(self, finish: Finish) -> None:
        wires, self._wires = self._wires, {}
        for wire in wires.values():
            wire.close()
        parts, self.parts = self.parts, []
        for part in parts:
            if deltas := part.jobs.end_all(finish):
                self._news.deltas(tuple(deltas))
            self._news.left(part)

    def _again(self) -> None:
        """Start again, later each time, unless it has served for a while."""
        if not self.restarts or self._is_stopping:
            return
        wait_s = self._backoff.take()
        LOG.warning("group %d starts again in %g s", self.index, wait_s)
        self._timer.set(wait_s, self.start)

    def _end(self) -> None:
        """Stop, without waiting for what ends by itself."""
        self._timer.clear()
        self._watch.clear()
        self._drop(Finish(FinishKind.ABORT, FinishCause.DRAIN))
        if self._launched is None:
            self._over()
        else:
            self._launched.end()

    def _over(self) -> None:
        self._timer.clear()
        self._watch.clear()
        self._drop(Finish(FinishKind.ABORT, FinishCause.DRAIN))
        self.state, self.reason = "ended", "it was shut down"
        self._news.moved(self)

    def _suspect(self, rank: int, word: str, *, is_said: bool = False) -> None:
        """Something is wrong with a rank, by its own word or by its silence. Why the group does not
        end at once: what is heard first may come of another's end, and the launcher, which sees all
        ranks of this machine, says which was first a moment later."""
        if not self._word:
            self._word, self._is_said = word, is_said
            if self._launched is None:
                # Why: the launcher has ended, and what is known of that is judged in a moment.
                return
            is_here = rank < self.ranks // self._order.settings.nodes
            self._await_word(self._loop.time() + (LAST_WORD_S if is_here else FAR_S))

    def _await_word(self, until: float) -> None:
        if self._words.died() or self._loop.time() >= until:
            self._fail(self._verdict())
        else:
            self._timer.set(LOOK_S, lambda: self._await_word(until))

    def _verdict(self, code: int = 0) -> str:
        """The launcher's word where it names a signal; else a rank's own; else what there is: "",
        for nothing. `code`: how the launcher ended; one that died took its ranks with it."""
        died = (self._words.ended(code), True) if code < 0 else ("", False)
        sentence, is_signal = self._words.died() or died
        if self._word and (self._is_said or not sentence) and not is_signal:
            return self._word
        return sentence

    def _hush(self) -> None:
        """Somebody said something: the silence begins anew."""
        if self.state == "starting" and not self._word:
            self._timer.set(self._order.settings.start_timeout, self._silent)

    def _muted(self, rank: int) -> None:
        if self._is_stopping:
            self._end()
        else:
            self._fail(self._words.mute(rank, self._order.settings.silence_timeout))

    def _silent(self) -> None:
        seconds = self._order.settings.start_timeout
        self._fail(self._words.silent(self._hellos, self._wires, seconds))
