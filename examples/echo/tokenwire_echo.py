"""An engine in a thread of its own, whose model answers a prompt with the prompt's own ids."""

import threading
import time
from collections.abc import Iterable, Sequence

from msgspec import Struct

from tokenwire.core.factory import Factory, Services
from tokenwire.core.hookspecs import impl
from tokenwire.core.outlet import Allowance, Outlet
from tokenwire.core.ports.engine import Engine
from tokenwire.core.progress import Progress
from tokenwire.core.threaded_engine import Inbox, Send, ThreadedEngine, Worker, nowhere
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import (
    Abort,
    Control,
    Counts,
    Credit,
    EngineCard,
    EngineStatus,
    Finish,
    FinishCause,
    FinishKind,
    TokenDelta,
    TokenJob,
)

CAPABILITIES = ("n", "stop_ids", "stop_sequences", "resume", "reasoning_budget", "credit")
DRAINED = Finish(FinishKind.ABORT, FinishCause.DRAIN)


class EchoSettings(Struct, frozen=True, forbid_unknown_fields=True):
    step_ms: float = 20.0


class Choice:
    """One answer: `progress` knows when it ends, `outlet` what may be sent of it."""

    def __init__(self, job: TokenJob, index: int, allowance: Allowance, card: EngineCard) -> None:
        self.job, self.index, self.allowance = job, index, allowance
        self.outlet = Outlet(job, index, allowance, card.credit_cap)
        self.outlet.counts = Counts(prompt=len(job.prompt), computed=len(job.prompt))
        self.progress = Progress(job, eos_ids=card.eos_ids, context_length=card.context_length)

    @property
    def may_run(self) -> bool:
        outlet = self.outlet
        return self.progress.finish is None and not (outlet.is_blocked or outlet.is_over)

    def step(self) -> list[TokenDelta]:
        forced, masked = self.progress.forced(), self.progress.masked()
        id = self._model(masked) if forced is None else forced
        sent = self.progress.push(id)
        is_forced = forced is not None
        return self.outlet.put(TokenIds(sent), finish=self.progress.finish, is_forced=is_forced)

    def _model(self, masked: frozenset[int]) -> int:
        prompt, at = self.job.prompt, self.progress.total
        likely: tuple[int, ...] = (prompt[at % len(prompt)], *range(len(masked) + 1))
        return next(id for id in likely if id not in masked)


class EchoWorker(Worker):
    def __init__(self, card: EngineCard, step_s: float) -> None:
        self._card, self._step_s = card, step_s
        self._send: Send = nowhere
        self._inbox: Inbox[TokenJob | Control] = Inbox()
        self._choices: list[Choice] = []
        self._thread = threading.Thread(target=self._run, name="echo", daemon=True)

    def start(self, send: Send) -> None:
        self._send = send
        self._thread.start()

    def submit(self, jobs: Sequence[TokenJob]) -> None:
        self._inbox.put(jobs)

    def control(self, frames: Sequence[Control]) -> None:
        self._inbox.put(frames)

    def stop(self) -> None:
        self._inbox.stop()

    def status(self) -> EngineStatus:
        return EngineStatus(card=self._card, running=len(self._choices))

    # Below here everything is in the thread.

    def _run(self) -> None:
        while not self._inbox.is_stopping:
            out = [delta for message in self._inbox.take() for delta in self._read(message)]
            running = [choice for choice in self._choices if choice.may_run]
            for choice in running:
                out += choice.step()
            self._choices = [choice for choice in self._choices if not choice.outlet.is_over]
            self._send(tuple(out))
            if running:
                time.sleep(self._step_s)
            else:
                self._inbox.sleep()
        self._send(tuple(d for choice in self._choices for d in choice.outlet.end(DRAINED)))

    def _read(self, message: TokenJob | Control) -> list[TokenDelta]:
        match message:
            case TokenJob() as job:
                allowance = Allowance(job.credit)
                made = [Choice(job, index, allowance, self._card) for index in range(job.n)]
                self._choices += made
                return [
                    delta
                    for choice in made
                    if (finish := choice.progress.finish) is not None
                    for delta in choice.outlet.end(finish)
                ]
            case Abort(job=name, choice=index, reason=reason):
                finish = Finish(FinishKind.ABORT, FinishCause(reason.value))
                ended = (each for each in self._of(name) if index in (None, each.index))
                return [delta for choice in ended for delta in choice.outlet.end(finish)]
            case Credit(job=name, tokens=tokens):
                for choice in self._of(name)[:1]:
                    choice.allowance.add(tokens)
                return [delta for choice in self._of(name) for delta in choice.outlet.flush()]
        return []

    def _of(self, job: str) -> list[Choice]:
        return [choice for choice in self._choices if choice.job.job == job]


def build(settings: EchoSettings, services: Services) -> Engine:
    vocabulary = None if services.tokenizer is None else services.tokenizer.vocabulary
    card = EngineCard(
        model=services.model,
        vocab_size=256 if vocabulary is None else vocabulary.size,
        context_length=services.context_length or 2048,
        fingerprints={} if vocabulary is None else vocabulary.fingerprints,
        eos_ids=() if vocabulary is None else tuple(vocabulary.eos_ids),
        capabilities=CAPABILITIES,
    )
    return ThreadedEngine(EchoWorker(card, settings.step_ms / 1000), card, 1024, "echo")


@impl
def register_engines() -> Iterable[Factory[Engine]]:
    return [Factory("echo", EchoSettings, build, summary="the prompt's ids, over again")]
