"""Runs plans on the device: inputs up, network, draw, results down. Knows no job's life.

`launch` does not wait for the device; `Step.results` does, one step later where steps overlap. On
a CPU a thread of its own stands for the device's stream, where overlapping is asked for.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, final

import numpy as np
import torch
from torch import Tensor

from tokenwire.plugins.engines.cuda.alive import is_alive
from tokenwire.plugins.engines.cuda.batch import Batch
from tokenwire.plugins.engines.cuda.edits import collect
from tokenwire.plugins.engines.cuda.inputs import Inputs, Pass, blank, pass_of, prepare
from tokenwire.plugins.engines.cuda.memory import device_memory
from tokenwire.plugins.engines.cuda.passes import SLICE, Passes
from tokenwire.plugins.engines.cuda.policy.plan import Row
from tokenwire.plugins.engines.cuda.results import (
    NAMES,
    NOTHING,
    Asked,
    Drew,
    PromptWish,
    Step,
)
from tokenwire.plugins.engines.cuda.rows import Rows
from tokenwire.plugins.engines.cuda.sampler import Drawn, Draws, Sampler, Scores

if TYPE_CHECKING:
    from tokenwire.plugins.engines.cuda.parallel.followers import Followers

__all__ = ("Runner",)


@final
class Runner:
    def __init__(
        self,
        passes: Passes,
        rows: Rows,
        *,
        vocab_size: int,
        executor: Executor | None = None,
        forbid_waits: bool = False,
        followers: Followers | None = None,
    ) -> None:
        """`forbid_waits`: a launch that waits for a GPU raises RuntimeError: for tests.
        `followers`: the other ranks that share every batch."""
        self._forbid_waits = forbid_waits
        self._launched = 0
        self.passes = passes
        self.rows = rows
        self._executor = executor
        self._followers = followers
        self._sampler = Sampler(passes.model.ops, vocab_size, passes.move)
        self._vocab_size = vocab_size

    def launch(
        self, rows: Sequence[Row], decode_rows: int, asked: Asked = NOTHING, span: int = 0
    ) -> Step:
        """Everything that the host must prepare, then the device's work. Does not wait for it.
        No rows: a blank token, so that parts which share experts make as many passes. `span`: as
        Batch's."""
        passes = self.passes
        self._launched += 1
        step, launch = Step(rows, self._launched), time.perf_counter_ns()
        with self._no_wait():
            found = self._pass(rows, decode_rows, span)
            if self._followers is not None:
                self._followers.tell(found, asked.prompts)
            inputs, batch = found.inputs, passes.batch(found)
            draws = self._draws(inputs)
            prepared = time.perf_counter_ns()
            step.times = (launch, prepared, prepared, 0)
            if self._executor is not None:
                step.future = self._executor.submit(
                    self._in_stream, step, batch, inputs, draws, asked
                )
                return step
            drew = self._compute(batch, inputs, draws, asked)
            if passes.is_cuda:
                step.host = _to_host(drew)
                step.event = torch.cuda.Event()
                step.event.record()
            else:
                step.host = drew
                step.times = (launch, prepared, prepared, time.perf_counter_ns())
        return step

    def close(self) -> None:
        """No step will be launched again."""
        if self._executor is not None:
            self._executor.shutdown(wait=False)

    def rest(self) -> None:
        """There is nothing to launch, now."""
        if self._followers is not None:
            self._followers.beat()

    def dismiss(self) -> None:
        """The ranks that share the batches may end."""
        if self._followers is not None:
            self._followers.stop()

    def recover(self) -> None:
        """After a step that failed: give unused memory back, so that a smaller one may fit."""
        if self.passes.is_cuda:
            torch.cuda.empty_cache()

    def is_alive(self) -> bool:
        """Whether the device still works at all."""
        return is_alive(self.passes.device)

    def block_bytes(self) -> tuple[int, ...]:
        """Of one block of each KV group, in all its layers."""
        found = [0] * len(self.rows.tables)
        layers = self.passes.model.config.group_of_layer
        for cache, group in zip(self.passes.caches, layers, strict=True):
            found[group] += cache.k[0].nbytes + cache.v[0].nbytes
        return tuple(found)

    def memory(self) -> tuple[int, int] | None:
        """Bytes that the device has, and those in use by whomever; None: nobody can say."""
        return device_memory(self.passes.device)

    # --- host to device ---------------------------------------------------------------------

    def _pass(self, rows: Sequence[Row], decode_rows: int, span: int) -> Pass:
        held, size = self.rows, self.passes.block_size
        if not rows:
            return blank(len(held.tables), span)
        return pass_of(prepare(rows, decode_rows, held, size), held, size, span)

    def _draws(self, inputs: Inputs) -> Draws:
        rows, held = inputs.logit_rows, self.rows
        return Draws(
            temperature=held.temperature[rows],
            top_k=held.top_k[rows],
            top_p=held.top_p[rows],
            min_p=held.min_p[rows],
            seeds=held.seed[rows],
            positions=inputs.logit_positions,
        )

    def _no_wait(self) -> AbstractContextManager[None]:
        return _guarded() if self._forbid_waits and self.passes.is_cuda else nullcontext()

    # --- on the device ------------------------------------------------------------------------

    def _in_stream(
        self, step: Step, batch: Batch, inputs: Inputs, draws: Draws, asked: Asked
    ) -> Drew:
        """In the thread that stands for the device's stream."""
        began = time.perf_counter_ns()
        found = self._compute(batch, inputs, draws, asked)
        step.times = (*step.times[:2], began, time.perf_counter_ns())
        return found

    def _compute(self, batch: Batch, inputs: Inputs, draws: Draws, asked: Asked) -> Drew:
        passes, others = self.passes, self._followers
        with torch.inference_mode():
            hidden = passes.hidden(batch, inputs)
            wanted = hidden[batch.logit_rows]
            edits = collect(list(asked.edits), self._vocab_size)
            drawn = self._sampler.draw(
                wanted, passes.model.logits(wanted), draws, edits, asked.wishes
            )
            if others is not None:
                others.share(drawn.ids)
            passes.keep(inputs, drawn.ids)
            prompts = tuple(self._score(hidden, inputs, wish) for wish in asked.prompts)
            return drawn, prompts

    def _score(self, hidden: Tensor, inputs: Inputs, wish: PromptWish) -> Scores:
        move, count = self.passes.move, len(wish.targets)
        targets = move(np.array(wish.targets, np.int64))
        extra = move(np.tile(np.array(wish.extra, np.int64), (count, 1)))
        parts = [
            self._sampler.score(logits, targets[at : at + SLICE], wish.top, extra[at : at + SLICE])
            for at, logits in self.passes.prompt_logits(hidden, inputs, wish.row, count)
        ]
        return Scores(*(torch.cat([getattr(part, name) for part in parts]) for name in NAMES))


@contextmanager
def _guarded() -> Iterator[None]:
    """torch raises where it would wait for the device."""
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def _to_host(found: Drew) -> Drew:
    drawn, prompts = found

    def down(tensor: Tensor) -> Tensor:
        host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
        return host.copy_(tensor, non_blocking=True)

    def whole(scores: Scores) -> Scores:
        return Scores(*(down(getattr(scores, name)) for name in NAMES))

    moved = Drawn(
        down(drawn.ids), down(drawn.is_sound), tuple(whole(each) for each in drawn.scores)
    )
    return moved, tuple(whole(each) for each in prompts)
