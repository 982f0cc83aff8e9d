"""One call, ready to run, to its end: its stream, its run, and what observers are told of it.

Knows no HTTP request, and nothing of what came before the work was ready.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from functools import partial
from typing import final

from tokenwire.core.answer_record import stopped
from tokenwire.core.errors import CallError, ErrorKind
from tokenwire.core.exchange import ClientGone
from tokenwire.core.flusher import Flusher
from tokenwire.core.keeper import Keeper
from tokenwire.core.ports.codec import KeptReply, Reply
from tokenwire.core.ports.observer import Observer
from tokenwire.core.run import Run, RunSettings
from tokenwire.core.shelf import Shelf
from tokenwire.core.stream import AnswerStream
from tokenwire.core.tale import Tale
from tokenwire.core.tokens import AbortReason, TokenDelta
from tokenwire.core.work import Work

__all__ = ("Performer",)

log = logging.getLogger("tokenwire.flow")


@final
class Performer:
    """Made once; holds no state of any call."""

    def __init__(
        self, observers: Sequence[Observer], settings: RunSettings, shelf: Shelf | None
    ) -> None:
        """`shelf` None: nothing is kept."""
        self._observers = tuple(observers)
        self._settings = settings
        self._shelf = shelf
        self._flusher = Flusher(settings.flush_s)

    async def perform(
        self,
        work: Work,
        reply: Reply,
        *,
        answer: Sequence[TokenDelta] | None = None,
        record: list[TokenDelta] | None = None,
    ) -> bool:
        """Run it and tell of it, however it ends -> whether it ended well."""
        call, job = work.call, work.planned.job
        dispatcher = work.model.engine()
        keeper = None
        if call.keeping is not None and self._shelf is not None and isinstance(reply, KeptReply):
            keeper = Keeper(self._shelf, reply, call)
        stream = AnswerStream(
            work.generation(),
            reply,
            stream=call.output.stream,
            abort=lambda choice: dispatcher.abort(job.job, choice, AbortReason.STOP_TEXT),
            credit=None if job.credit is None else partial(dispatcher.credit, job.job),
            record=record,
            flusher=self._flusher,
            break_off=lambda: dispatcher.break_off(job.job),
            gathers=work.gathers,
        )
        run = Run(work, reply, stream, self._settings, answer=answer, keeper=keeper)
        tale = Tale(self._observers, work.started())
        outcome, status = "ok", 200
        try:
            await run.go()
            if stream.generation.failed is not None:
                outcome = stream.generation.failed.kind.word
            else:
                work.model.keep(call, work.prompt, stream.generation)
            if record is not None:
                record += stopped(record, stream.generation.stopped)
        except (ClientGone, asyncio.CancelledError):
            outcome, status = "cancelled", ErrorKind.CLIENT_CLOSED.status
            raise
        except CallError as error:
            outcome, status = error.kind.word, error.status
            raise
        except Exception:
            outcome, status = ErrorKind.INTERNAL.word, ErrorKind.INTERNAL.status
            if not run.has_started:
                raise
            # Why: the head is out, so no status can tell; the stream just ends.
            log.exception("request %s failed after its stream began", work.stamp.id)
        finally:
            finish = stream.generation.failed_finish
            if finish is not None:
                log.warning(
                    "request %s: engine said %s(%s): %s",
                    work.stamp.id,
                    finish.kind.value,
                    finish.cause.value,
                    finish.message,
                )
            now = time.perf_counter()
            tale.end(stream, outcome, status, now, is_cached=answer is not None)
        return outcome == "ok"
