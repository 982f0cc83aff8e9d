"""Random traces of everything that a loop can do: the laws hold after each call, and in the end
every sequence has said what it says alone, and every block has come back."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.plugins.engines.cuda.policy.rig import Rig, answer, next_id
from tokenwire.core.tokens import KvPin
from tokenwire.plugins.engines.cuda.policy.sequence import Sequence, State

WINDOWS = st.sampled_from([(0,), (0,), (0, 6), (5,), (0, 1, 9)])
PICK = st.integers(0, 10**6)


class Trace(RuleBasedStateMachine):
    @initialize(
        windows=WINDOWS,
        blocks=st.integers(14, 40),
        batch=st.integers(1, 5),
        tokens=st.integers(3, 40),
        cap=st.sampled_from([0, 3, 8]),
        depth=st.integers(0, 2),
        eager=st.booleans(),
    )
    def build(self, windows, blocks, batch, tokens, cap, depth, eager) -> None:
        self.rig = Rig(
            blocks,
            windows=windows,
            depth=depth,
            eager=eager,
            max_batch_size=batch,
            max_batch_tokens=tokens,
            max_model_len=40,
            long_prefill_tokens=cap,
        )
        self.gone: set[Sequence] = set()
        self.held = []

    def pick(self, pick: int, *states: State) -> Sequence | None:
        found = [seq for seq in self.rig.known if seq.state in states]
        return found[pick % len(found)] if found else None

    @rule(
        bits=st.lists(st.integers(0, 1), max_size=3),
        length=st.integers(1, 24),
        output=st.integers(1, 14),
        copies=st.integers(1, 3),
        priority=st.sampled_from([0, 0, 0, 1, 5]),
        feedback=st.booleans(),
        reads=st.sampled_from([True, True, True, False]),
        pins=st.sampled_from([(), (), (KvPin(8, 5),), (KvPin(4, None), KvPin(16, 60))]),
        deadline=st.sampled_from([None, None, 6]),
    )
    def add(self, bits, length, output, copies, priority, feedback, reads, pins, deadline) -> None:
        prompt = [*bits, *range(length)]
        for _ in range(copies):
            self.rig.add(
                prompt,
                output,
                priority=priority,
                needs_feedback=feedback,
                reads_cache=reads,
                pins=pins,
                deadline=None if deadline is None else self.rig.now + deadline,
            )

    @rule()
    def schedule(self) -> None:
        if len(self.rig.flight) > self.rig.depth:
            self.rig.retire()
        self.rig.schedule()

    @precondition(lambda self: self.rig.flight)
    @rule()
    def retire(self) -> None:
        self.rig.retire()

    @rule(count=st.integers(1, 8))
    def steps(self, count) -> None:
        for _ in range(count):
            self.rig.step()

    @rule(pick=PICK)
    def abort(self, pick) -> None:
        seq = self.pick(pick, State.WAITING, State.PARKED, State.RUNNING)
        if seq is not None:
            self.rig.scheduler.abort(seq)
            self.rig.scheduler.abort(seq)
            self.gone.add(seq)

    @rule(pick=PICK)
    def poison(self, pick) -> None:
        seq = self.pick(pick, State.RUNNING)
        if seq is not None:
            self.rig.scheduler.forget(seq)
            self.rig.scheduler.abort(seq)
            self.gone.add(seq)

    @rule()
    def expire(self) -> None:
        for seq in self.rig.scheduler.expired(self.rig.now):
            assert seq.deadline is not None
            assert seq.deadline <= self.rig.now
            self.rig.scheduler.abort(seq)
            self.gone.add(seq)

    @rule(pick=PICK, keep=st.booleans())
    def park(self, pick, keep) -> None:
        seq = self.pick(pick, State.WAITING, State.RUNNING, State.PARKED)
        if seq is not None:
            self.rig.scheduler.park(seq, keep=keep)
            assert keep or not seq.tables

    @rule(pick=PICK)
    def unpark(self, pick) -> None:
        seq = self.pick(pick, State.PARKED)
        if seq is not None:
            self.rig.scheduler.unpark(seq)

    @rule(pick=PICK, right=st.integers(0, 6), wrong=st.integers(0, 3))
    def propose(self, pick, right, wrong) -> None:
        seq = self.pick(pick, State.RUNNING)
        if seq is None or not seq.output_tokens:
            return
        tokens = list(seq.tokens)
        for _ in range(right):
            tokens.append(next_id(tokens))
        seq.drafts = [*tokens[len(seq.tokens) :], *([99] * wrong)]

    @rule()
    def reset(self) -> None:
        done = self.rig.kv.reset()
        assert done == (not any(pool.protected for pool in self.rig.kv.pools))

    @invariant()
    def laws(self) -> None:
        self.rig.check()

    def teardown(self) -> None:
        if not hasattr(self, "rig"):
            return
        for seq in self.rig.known:
            self.rig.scheduler.unpark(seq)
        self.rig.run()
        for seq in self.rig.known:
            assert seq.state is State.OVER
            said = list(seq.tokens[seq.prompt_tokens :])
            wanted = answer(seq.tokens[: seq.prompt_tokens], len(said))
            assert said == wanted
            assert seq in self.gone or len(seq.tokens) >= seq.max_tokens
        for pool in self.rig.kv.pools:
            assert pool.protected == 0
            assert pool.free + pool.evictable == pool.total
        assert not self.rig.scheduler._board.promises._leaders


def test_random_traces() -> None:
    run_state_machine_as_test(
        Trace,
        settings=settings(
            max_examples=60,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
