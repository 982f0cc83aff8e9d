"""Which waiting sequences start in a step: in order, while budget, places and blocks last. Knows
no clock.

One is admitted where all that run, and it, are expected to find blocks to their ends; by how much
output they are expected to make of what they may.
"""

from __future__ import annotations

from typing import final

from tokenwire.plugins.engines.cuda.policy.board import Board
from tokenwire.plugins.engines.cuda.policy.kv import Hit
from tokenwire.plugins.engines.cuda.policy.sequence import Sequence
from tokenwire.plugins.engines.cuda.policy.step import Step

__all__ = ("Admission",)


@final
class Admission:
    def __init__(self, board: Board, places: int) -> None:
        """`places`: sequences that may run at once."""
        self.query_tokens = 0
        self.hit_tokens = 0
        self._board = board
        self._kv = board.kv
        self._places = places

    def admit(self, step: Step) -> None:
        board, index = self._board, 0
        waiting = board.waiting.items
        while index < len(waiting) and step.left > 0 and len(board.running) < self._places:
            seq = waiting[index]
            if seq in board.holders:
                self._resume(step, seq)
                continue
            hit = self._kv.find(seq)
            if board.promises.is_worth_a_wait(seq, hit.blocks):
                index += 1
                continue
            end = step.end_of(seq, hit.blocks * self._kv.block_size)
            if not self._affords(step, seq, hit, end):
                if not board.running.items and not board.has_fences:
                    # Why: nobody who runs will ever give a block back.
                    board.evict_holder(step)
                return
            self._start(step, seq, hit, end)

    def _start(self, step: Step, seq: Sequence, hit: Hit, end: int) -> None:
        self._kv.open(seq, hit, end)
        if not seq.was_admitted:
            seq.was_admitted = True
            seq.cached_tokens = min(seq.computed, seq.prompt_tokens)
            self.query_tokens += seq.prompt_tokens
            self.hit_tokens += seq.cached_tokens
        self._board.run(seq)
        step.grown.append(seq)
        if step.reserved is not None:
            _add(step.reserved, self._future(step, seq))
        step.advance(seq, end)

    def _resume(self, step: Step, seq: Sequence) -> None:
        """It was parked and still has its blocks."""
        self._board.holders.remove(seq)
        self._board.run(seq)
        step.reserved = None
        step.grown.append(seq)
        if seq.target == seq.computed or seq.target >= seq.max_tokens:
            return
        if seq.pending and (seq.needs_feedback or seq.drafting or seq.drafts):
            return
        end = step.end_of(seq, seq.computed)
        if self._kv.grow(seq, end):
            step.advance(seq, end)

    def _affords(self, step: Step, seq: Sequence, hit: Hit, end: int) -> bool:
        """Whether there are blocks for its first chunk, and, unless it would be alone, for all
        that it and those that run are expected to take."""
        pools, running = self._kv.pools, self._board.running.items
        first = self._kv.cost(hit, end)
        if any(pool.available < cost for pool, cost in zip(pools, first, strict=True)):
            return False
        if not running:
            return True
        if step.reserved is None:
            step.reserved = [0] * len(pools)
            for other in running:
                _add(step.reserved, self._future(step, other))
        for group, blocks in enumerate(self._future(step, seq)):
            table = hit.tables[group]
            shared = len(table) - table.count(0) - hit.idle[group]
            if step.reserved[group] + blocks - shared > pools[group].available:
                return False
        return True

    def _future(self, step: Step, seq: Sequence) -> list[int]:
        """Blocks a group that it is expected to take yet."""
        known, made = len(seq.tokens), seq.output_tokens
        expected = None if seq.expected_tokens is None else seq.expected_tokens - made
        output = self._board.forecast.output(max(seq.max_tokens - 1 - known, 0), expected)
        return self._kv.future(seq, known + output, step.chunk)


def _add(total: list[int], more: list[int]) -> None:
    for group, blocks in enumerate(more):
        total[group] += blocks
