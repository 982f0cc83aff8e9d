"""Which tokens of which sequences the next step computes. Knows no tensor and no clock.

Each step has a budget of tokens. Running sequences go first: those that decode, then those in
their prompt, chunk by chunk; then waiting ones, by priority and age. Where blocks are missing, the
last in rank gives way and computes its KV again later; in such a step nobody is admitted.

Steps may overlap: `schedule` may be called before the step before has been retired. Every row of a
plan must be retired, in the order of the plans. Blocks that a step in flight uses are not handed
out before it has retired.

Argues its length: what may happen to a sequence between two steps is one state, read in one place.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence as Many
from typing import final

from msgspec import Struct

from tokenwire.plugins.engines.cuda.policy.admission import Admission
from tokenwire.plugins.engines.cuda.policy.board import Board
from tokenwire.plugins.engines.cuda.policy.forecast import Forecast
from tokenwire.plugins.engines.cuda.policy.kv import BlockTables
from tokenwire.plugins.engines.cuda.policy.limits import Limits
from tokenwire.plugins.engines.cuda.policy.plan import Plan, Row
from tokenwire.plugins.engines.cuda.policy.sequence import Sequence, State
from tokenwire.plugins.engines.cuda.policy.step import Step

__all__ = ("Scheduler", "SchedulerStatus")

SLACK = 64
"""Entries that a heap may have beyond twice those that count."""


@final
class SchedulerStatus(Struct, frozen=True):
    running: int
    waiting: int
    """Parked ones included."""
    blocks_total: int
    """Of the first KV group, as all block counts."""
    blocks_free: int
    blocks_evictable: int
    """They hold cached KV, and go when room is needed."""
    blocks_protected: int
    preemptions: int
    query_tokens: int
    """Prompt tokens of all sequences that began."""
    hit_tokens: int
    """Those of them that were in the cache."""
    output_ratio: float
    """The forecast: the part of its allowed output that a sequence is expected to use."""


@final
class Scheduler:
    def __init__(self, limits: Limits, kv: BlockTables, forecast: Forecast | None = None) -> None:
        """Raises ValueError when the limits cannot go together."""
        if kv.block_size != limits.block_size:
            raise ValueError(f"blocks of {limits.block_size} and of {kv.block_size} tokens")
        if min(limits.max_batch_size, limits.max_batch_tokens, limits.max_model_len) < 1:
            raise ValueError(f"wanted limits of 1 at least, got {limits}")
        self.limits = limits
        self.kv = kv
        self.forecast = forecast or Forecast()
        self._board = Board(kv, self.forecast)
        self._admission = Admission(self._board, limits.max_batch_size)
        self._deadlines: list[tuple[float, int, Sequence]] = []
        self._arrivals = 0
        self._steps = 0
        cap = limits.long_prefill_tokens or limits.max_batch_tokens
        self._chunk = min(cap, limits.max_batch_tokens)

    @property
    def running(self) -> int:
        return len(self._board.running)

    @property
    def waiting(self) -> int:
        """Sequences that wait or are parked."""
        return len(self._board.waiting) + len(self._board.parked)

    @property
    def decoding(self) -> int:
        """Running sequences that lack no more than their last token."""
        return sum(seq.target - seq.computed <= 1 for seq in self._board.running.items)

    @property
    def has_prefill(self) -> bool:
        """A prompt could begin, or go on, in the next step, as far as blocks last."""
        has_place = self.running < self.limits.max_batch_size
        return self.decoding < self.running or (has_place and bool(self._board.waiting.items))

    @property
    def is_idle(self) -> bool:
        """No sequence is left, and nothing of them is still to retire."""
        return not (self.running or self.waiting or self._board.has_fences)

    def status(self) -> SchedulerStatus:
        pool = self.kv.pools[0]
        return SchedulerStatus(
            running=self.running,
            waiting=self.waiting,
            blocks_total=pool.total,
            blocks_free=pool.free,
            blocks_evictable=pool.evictable,
            blocks_protected=pool.protected,
            preemptions=self._board.preemptions,
            query_tokens=self._admission.query_tokens,
            hit_tokens=self._admission.hit_tokens,
            output_ratio=self.forecast.ratio,
        )

    def add(self, seq: Sequence) -> str:
        """Let a new sequence wait. Returns why it can never run; "": it was taken."""
        limits, known = self.limits, len(seq.tokens)
        # Why less one: the last id is sampled, and never computed.
        most = seq.max_tokens - 1
        if not known:
            return "the job has no tokens: send one at least"
        if most < known:
            return f"max_tokens of {seq.max_tokens} leaves no output after {known} tokens"
        if most > limits.max_model_len:
            return (
                f"the job may need {most} tokens of context, the engine has"
                f" {limits.max_model_len}: lower max_tokens, or raise max_model_len"
            )
        reason = self.kv.refusal(most, self._chunk)
        if reason:
            return reason
        if seq.order < 0:
            seq.order = self._arrivals
            seq.rank = (-seq.priority, seq.order)
        self._arrivals += 1
        self._board.waiting.add(seq)
        if seq.deadline is not None:
            self._forget_deadlines()
            heapq.heappush(self._deadlines, (seq.deadline, self._arrivals, seq))
        return ""

    def park(self, seq: Sequence, *, keep: bool = True) -> None:
        """Do not schedule it before `unpark`. It keeps the blocks that it has, until others need
        them, or where `keep` is false gives them back; the latter works on a parked one too."""
        board = self._board
        if seq.state is State.OVER:
            return
        if seq.state is State.RUNNING:
            board.holders.add(seq)
        board.stop(seq)
        seq.state = State.PARKED
        board.parked.add(seq)
        if not keep and seq in board.holders:
            board.evict(seq)

    def unpark(self, seq: Sequence) -> None:
        """It may be scheduled again. Nothing happens to one that is not parked."""
        if seq.state is State.PARKED:
            self._board.stop(seq)
            seq.state = State.WAITING
            self._board.waiting.add(seq)

    def abort(self, seq: Sequence) -> None:
        """It is over, in whatever state and for whatever reason (also because it is finished).
        What steps in flight still bring for it is void. A second call does nothing."""
        if seq.state is State.OVER:
            return
        self._board.stop(seq)
        self._board.holders.discard(seq)
        seq.state = State.OVER
        self._board.give_back(seq)

    def forget(self, seq: Sequence) -> None:
        """What is in its blocks is wrong (a network that gave NaN): nobody may find it. For one
        that is about to be aborted; what it shares with others is theirs to keep."""
        self.kv.forget(seq)

    def expired(self, now: float) -> tuple[Sequence, ...]:
        """Sequences whose deadline has come, each told once: abort them."""
        found: list[Sequence] = []
        while self._deadlines and self._deadlines[0][0] <= now:
            seq = heapq.heappop(self._deadlines)[2]
            if seq.state is not State.OVER:
                found.append(seq)
        return tuple(found)

    def schedule(self, now: float, prefills: bool = True) -> Plan:
        """The next step, which counts as in flight from here on. Its rows may be none. `prefills`
        False: it has rows of those alone that only lack their last token; prompts wait, and nobody
        is admitted."""
        self.kv.tick(now)
        self.forecast.decay()
        step = Step(self.limits.max_batch_tokens, self._chunk)
        unfinished = self._decode(step)
        if prefills:
            self._prefill(step, unfinished)
        self._steps += 1
        return step.plan(self._steps)

    def retire(self, row: Row, ids: Many[int] = ()) -> bool:
        """A row's step is done; `ids`: what it brought, where it samples: one id, or one more than
        drafts were accepted, or any that the loop puts in their place. Without `ids` the loop must
        end the sequence. False: the row is void, the sequence was preempted or is over."""
        seq = row.seq
        if row.epoch != seq.epoch:
            self._board.unfence(seq, row.epoch)
            return False
        written = row.start + row.count
        if not row.samples:
            seq.flying -= 1
        else:
            seq.pending -= 1
            if seq.drafts:
                seq.drafts = []
            if len(ids) == 1 and not row.drafts:
                seq.tokens.append(ids[0])
            else:
                written -= _settle(row, ids)
        if written >= seq.full_at:
            stored = seq.stored
            self.kv.store(seq, written)
            self._board.promises.keep(seq, stored)
        return True

    def _forget_deadlines(self) -> None:
        """Of sequences that are over, once they are most: theirs may be hours away."""
        if len(self._deadlines) > 2 * (self.running + self.waiting) + SLACK:
            self._deadlines = [each for each in self._deadlines if each[2].state is not State.OVER]
            heapq.heapify(self._deadlines)

    def _decode(self, step: Step) -> list[Sequence]:
        """Rows of those that only lack their last token; returns those that lack more.

        Strategy: this loop is the whole cost of most steps, so what is rare is a call."""
        prefills: list[Sequence] = []
        ones = step.ones
        for seq in self._board.running.items:
            start, target = seq.computed, seq.target
            if target - start != 1:
                if target > start:
                    prefills.append(seq)
                continue
            if len(ones) >= step.budget:
                break
            if seq.pending:
                if seq.needs_feedback or seq.drafting or seq.drafts:
                    continue
            elif seq.drafts:
                self._draft(step, seq)
                continue
            if target > seq.quick and (
                target >= seq.max_tokens or not self._board.has_room(step, seq, target)
            ):
                continue
            seq.computed = target
            seq.target = target + 1
            seq.pending += 1
            ones.append(Row(seq, seq.epoch, start, 1, (), True))
        return prefills

    def _prefill(self, step: Step, unfinished: list[Sequence]) -> None:
        """Rows of those in their prompt, then of those that wait."""
        for seq in unfinished:
            if step.left < 1:
                break
            if seq.state is State.RUNNING:
                end = step.end_of(seq, seq.computed)
                if self._board.has_room(step, seq, end):
                    step.advance(seq, end)
        if not step.preempted and self._board.waiting.items:
            self._admission.admit(step)

    def _draft(self, step: Step, seq: Sequence) -> None:
        """A row that checks drafts: as many as budget, length and free blocks allow."""
        start, target = seq.computed, seq.target
        if target >= seq.max_tokens:
            return
        longest = min(step.left, step.chunk, seq.max_tokens - target) - 1
        drafts = tuple(seq.drafts[: max(longest, 0)])
        held = seq.room
        if self.kv.grow(seq, target + len(drafts)):
            if seq.room > held:
                step.grown.append(seq)
        elif self._board.has_room(step, seq, target):
            drafts = ()
        else:
            return
        seq.drafts = []
        seq.drafting = len(drafts)
        seq.computed = target + len(drafts)
        seq.target = seq.computed + 1
        seq.pending += 1
        step.put(Row(seq, seq.epoch, start, 1 + len(drafts), drafts, True))


def _settle(row: Row, ids: Many[int]) -> int:
    """Take what a row brought, and take back drafts; returns how many were taken back."""
    seq, drafts = row.seq, row.drafts
    if seq.pending and len(ids) != 1:
        raise ValueError(f"wanted one id while a later step is in flight, got {len(ids)}")
    accepted = 0
    for draft, got in zip(drafts, ids[:-1], strict=False):
        if draft != got:
            break
        accepted += 1
    if drafts:
        seq.drafting = 0
    seq.tokens.extend(ids)
    seq.computed -= len(drafts) - accepted
    seq.target = len(seq.tokens) + seq.pending
    return len(drafts) - accepted
