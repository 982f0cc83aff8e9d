"""The ranks that share a part's batch: the leader schedules and draws, the others make its passes.

For every launch the leader tells what the pass is made of, over the host's group; the ids that it
draws reach the others from device to device, where the next pass takes them: nobody waits for the
host. Knows no sequence and no sampling.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Executor, Future
from queue import SimpleQueue
from typing import Any, final

import torch
from torch import Tensor

from tokenwire.plugins.engines.cuda.batch import Batch
from tokenwire.plugins.engines.cuda.inputs import Inputs, Pass
from tokenwire.plugins.engines.cuda.parallel.group import Group, HostGroup
from tokenwire.plugins.engines.cuda.parallel.told import Told, read_told, write_told
from tokenwire.plugins.engines.cuda.passes import Passes
from tokenwire.plugins.engines.cuda.results import PromptWish

__all__ = ("BEAT_S", "Follower", "Followers")

BEAT_S = 60.0
"""How often an idle leader is heard at least, so that no wait for it is taken for a fault."""
END = b""
AHEAD = 2
"""Passes that a follower launches before it looks whether they went well."""


@final
class Followers:
    """At the leader. `tell`, `beat` and `stop` are its loop's; `share` its stream's."""

    def __init__(self, host: HostGroup, tensor: Group) -> None:
        self._host, self._tensor = host, tensor
        self._told = time.monotonic()

    def tell(self, made: Pass, prompts: Sequence[PromptWish] = ()) -> None:
        """Before the leader makes the pass itself."""
        self._told = time.monotonic()
        self._host.broadcast_bytes(write_told(made, prompts))

    def share(self, ids: Tensor) -> None:
        """What the pass's rows drew [R]."""
        if len(ids):
            self._tensor.broadcast(ids)

    def beat(self) -> None:
        """There is nothing to do, now."""
        now = time.monotonic()
        if now - self._told > BEAT_S / 2:
            self._told = now
            self._host.broadcast_bytes(write_told(None))

    def stop(self) -> None:
        """No pass will come again."""
        self._host.broadcast_bytes(END)


@final
class Follower:
    """At another rank of the part."""

    def __init__(
        self, passes: Passes, host: HostGroup, tensor: Group, executor: Executor | None = None
    ) -> None:
        """`executor`: the thread that stands for the device's stream, where passes overlap."""
        self._passes = passes
        self._host, self._tensor = host, tensor
        self._executor = executor
        self._flying: deque[Future[None] | Any] = deque()
        self._over: SimpleQueue[BaseException | None] = SimpleQueue()

    def run(self) -> None:
        """Until the leader stops. Raises what a pass raised; RuntimeError: the leader is gone. The
        process has to end then: its threads may wait for the others for ever."""
        threading.Thread(target=self._listen, name="tokenwire-follower", daemon=True).start()
        error = self._over.get()
        if error is not None:
            raise error
        if self._executor is not None:
            self._executor.shutdown()

    def _listen(self) -> None:
        """In a thread: it may wait for a leader that waits in a pass which failed here."""
        try:
            while (data := self._host.broadcast_bytes()) != END:
                told = read_told(data)
                if told.made is not None:
                    self._launch(told.made, told)
                while len(self._flying) > AHEAD:
                    self._wait()
            while self._flying:
                self._wait()
        except BaseException as error:
            self._over.put(error)
        else:
            self._over.put(None)

    def _launch(self, made: Pass, told: Told) -> None:
        batch = self._passes.batch(made)
        if self._executor is not None:
            self._flying.append(self._executor.submit(self._in_stream, batch, made.inputs, told))
            return
        self._compute(batch, made.inputs, told)
        if self._passes.is_cuda:
            event = torch.cuda.Event()
            event.record()
            self._flying.append(event)

    def _wait(self) -> None:
        first = self._flying.popleft()
        if isinstance(first, Future):
            first.result()
        else:
            first.synchronize()

    def _in_stream(self, batch: Batch, inputs: Inputs, told: Told) -> None:
        try:
            self._compute(batch, inputs, told)
        except BaseException as error:
            self._over.put(error)
            raise

    def _compute(self, batch: Batch, inputs: Inputs, told: Told) -> None:
        """As `Runner._compute`, in whose order all that the slices do together is done."""
        passes = self._passes
        with torch.inference_mode():
            hidden = passes.hidden(batch, inputs)
            passes.model.logits(hidden[batch.logit_rows])
            ids = torch.empty(len(inputs.logit_rows), dtype=torch.int64, device=passes.device)
            if len(ids):
                self._tensor.broadcast(ids)
            passes.keep(inputs, ids)
            for row, count in told.prompts:
                for _ in passes.prompt_logits(hidden, inputs, row, count):
                    pass
