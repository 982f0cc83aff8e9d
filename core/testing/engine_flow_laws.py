"""Laws 5 to 8 of the engine port: aborts, isolation, credit, status, events, the end."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from tokenwire.core import seeds
from tokenwire.core.testing.engine_delta_laws import Law
from tokenwire.core.testing.engine_probe import Answer, EngineProbe
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import (
    Abort,
    AbortReason,
    BlockRemoved,
    BlockSnapshot,
    BlockStored,
    Credit,
    JobSampling,
    JobStopping,
    KvEvent,
    TokenJob,
)

__all__ = ("FLOW",)

ENDLESS = JobStopping(ignore_eos=True)
IN_FLIGHT = 2
"""Steps that may be under way when an abort comes: one that is sent, one that is computed."""


async def an_abort_ends(probe: EngineProbe) -> None:
    """Law 5: within one step, with the reason; what it held is free; the others go on."""
    free = probe.engine.status().kv_blocks_free
    for reason in (AbortReason.CLIENT, AbortReason.STOP_TEXT, AbortReason.DEADLINE):
        answer, other = probe.submit(probe.job(stopping=ENDLESS), probe.job())
        await probe.begins(answer)
        seen = len(answer.deltas)
        probe.engine.control([Abort(answer.job.job, reason=reason)])
        await probe.ends(answer, other)
        probe.equal("finish", answer.why(), ("abort", reason.value))
        more = sum(len(delta.ids) > 0 for delta in answer.deltas[seen:])
        probe.true(f"{more} steps after an abort", more <= IN_FLIGHT)
        probe.equal("ids of a job beside it", len(other.ids), probe.tokens)
    await _settled(probe)
    status = probe.engine.status()
    probe.equal("running and waiting after aborts", (status.running, status.waiting), (0, 0))
    probe.equal("free blocks after aborts", status.kv_blocks_free, free)


async def an_abort_of_one_choice(probe: EngineProbe) -> None:
    """Law 5: the other choices go on."""
    if not probe.needs("n"):
        return probe.skip()
    first, second = probe.submit(probe.job(n=2))
    probe.engine.control([Abort(first.job.job, choice=1)])
    await probe.ends(first, second)
    probe.equal("the aborted choice's finish", second.why(), ("abort", "client"))
    probe.equal("the other choice's ids", len(first.ids), probe.tokens)


async def an_abort_of_nothing(probe: EngineProbe) -> None:
    """Law 5: aborting what is over or unknown does nothing."""
    over = await probe.run_one()
    probe.engine.control([Abort(over.job.job), Abort("no such job"), Credit("no such job", 5)])
    after = await probe.run_one()
    await probe.rest()
    probe.equal("finishes of a job that was over", _finishes(over), 1)
    probe.equal("deltas of unknown jobs", probe.strays, [])
    probe.equal("the next job's ids", len(after.ids), probe.tokens)


def _finishes(answer: Answer) -> int:
    return sum(delta.finish is not None for delta in answer.deltas)


async def interleaved_equals_alone(probe: EngineProbe) -> None:
    """Law 6: greedy or by seed, a job gives the same ids whatever runs beside it."""
    kinds = [
        {"prompt": prompt, "sampling": sampling}
        for prompt in probe.prompts
        for sampling in (JobSampling(temperature=0.0), JobSampling(seed=3), JobSampling(seed=4))
    ]
    alone = [(await probe.run_one(**kind)).ids for kind in kinds]
    jobs = [probe.job(**kinds[index % len(kinds)]) for index in range(probe.jobs)]
    answers = await probe.run(*jobs)
    for index, answer in enumerate(answers):
        probe.ended_well(answer)
        probe.equal(f"ids of job {index} of {probe.jobs}", answer.ids, alone[index % len(kinds)])


async def choices_are_seeded(probe: EngineProbe) -> None:
    """Law 6: choice k gives what a job of its own gives with seed mix(seed, k)."""
    if not probe.needs("n", "seed"):
        return probe.skip()
    sampling = JobSampling(temperature=1.0, seed=11)
    choices = await probe.run(probe.job(n=3, sampling=sampling))
    for index, choice in enumerate(choices):
        single = await probe.run_one(sampling=replace(sampling, seed=seeds.mix(11, index)))
        probe.equal(f"ids of choice {index}", choice.ids, single.ids)


async def credit_is_kept(probe: EngineProbe) -> None:
    """Law 7: no more tokens than credit, over all choices; it goes on when credit comes."""
    if not probe.needs("credit"):
        return probe.skip()
    plain = (await probe.run_one()).ids
    answer = probe.submit(probe.job(credit=2))[0]
    await _arrive(probe, answer, 2)
    await probe.rest()
    probe.equal("ids on a credit of 2", answer.ids, plain[:2])
    probe.true("a finish although ids are missing", answer.finish is None)
    probe.engine.control([Credit(answer.job.job, 1)])
    await _arrive(probe, answer, 3)
    await probe.rest()
    probe.equal("ids on a credit of 2 + 1", answer.ids, plain[:3])
    probe.engine.control([Credit(answer.job.job, probe.tokens)])
    await probe.ends(answer)
    probe.equal("ids on enough credit", answer.ids, plain)
    held = probe.submit(probe.job(credit=0))[0]
    await probe.rest()
    probe.equal("ids on no credit", held.ids, [])
    probe.engine.control([Abort(held.job.job)])
    await probe.ends(held)
    probe.equal("finish of a job without credit", held.why(), ("abort", "client"))


async def the_cap_holds(probe: EngineProbe) -> None:
    """Law 7: a job longer than the card's cap, without credit, is whole when credit comes."""
    length = probe.card.credit_cap + 2
    room = probe.card.context_length - len(probe.prompts[0])
    if not probe.needs("credit") or length > min(room, 64):
        return probe.skip()
    stopping = JobStopping(max_tokens=length, ignore_eos=True)
    plain = await probe.run_one(stopping=stopping)
    answer = probe.submit(probe.job(stopping=stopping, credit=0))[0]
    await probe.rest()
    probe.equal("ids on no credit", answer.ids, [])
    probe.engine.control([Credit(answer.job.job, length)])
    await probe.ends(answer)
    probe.equal("ids", answer.ids, plain.ids)


async def _arrive(probe: EngineProbe, answer: Answer, count: int) -> None:
    async def arrived() -> None:
        while len(answer.ids) < count:
            answer.moved.clear()
            await answer.moved.wait()

    await probe.within(arrived(), f"{count} ids on credit")


async def status_is_true(probe: EngineProbe) -> None:
    """Law 8: what runs is counted, its blocks are not free, and everything comes back."""
    before = probe.engine.status()
    probe.equal("running and waiting, idle", (before.running, before.waiting), (0, 0))
    probe.true("ready, idle", before.ready)
    answer = probe.submit(probe.job(stopping=ENDLESS))[0]
    await probe.begins(answer)
    if answer.finish is None:
        _check_busy(probe, answer.job)
    probe.engine.control([Abort(answer.job.job)])
    await probe.ends(answer)
    await _settled(probe)
    after = probe.engine.status()
    probe.equal("the card", after.card, before.card)
    probe.equal("free blocks, idle again", after.kv_blocks_free, before.kv_blocks_free)


def _check_busy(probe: EngineProbe, job: TokenJob) -> None:
    status = probe.engine.status()
    probe.true("a running job is not counted", status.running + status.waiting >= 1)
    total, free = status.kv_blocks_total, status.kv_blocks_free
    if total:
        held = -(-len(job.prompt) // probe.card.block_size)
        probe.true(f"{free} of {total} free while {held} are held", free <= total - held)


async def _settled(probe: EngineProbe) -> None:
    """Until status says that nothing runs, for as long as `rest` lasts."""
    for _ in range(20):
        status = probe.engine.status()
        if not status.running and not status.waiting:
            return
        await asyncio.sleep(probe.quiet_s / 20)


async def events_add_up(probe: EngineProbe) -> None:
    """KV events: a snapshot first, numbers without a gap, and together what a snapshot says."""
    if not probe.card.hash_root:
        return probe.skip()
    events = probe.engine.events()
    first = await probe.within(anext(events), "a first KV event")
    probe.true(f"the first event is {type(first).__name__}", isinstance(first, BlockSnapshot))
    read = [first]
    reader = asyncio.create_task(_collect(events, read))
    try:
        for prompt in probe.prompts:
            await probe.run_one(prompt=prompt)
        await probe.rest()
        fresh = await probe.within(anext(probe.engine.events()), "a second reader's snapshot")
    finally:
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)
    numbers = [event.seq for event in read]
    probe.equal("numbers", numbers, list(range(numbers[0], numbers[0] + len(numbers))))
    probe.true("no block was stored", len(read) > 1)
    probe.true("the second reader got no snapshot", isinstance(fresh, BlockSnapshot))
    probe.equal("blocks", _replayed(read), set(fresh.hashes))


async def _collect(events: object, into: list[KvEvent]) -> None:
    async for event in events:  # type: ignore[attr-defined]
        into.append(event)


def _replayed(events: list[KvEvent]) -> set[str]:
    held: set[str] = set()
    for event in events:
        match event:
            case BlockSnapshot():
                held = set(event.hashes)
            case BlockStored():
                held |= set(event.hashes)
            case BlockRemoved():
                held -= set(event.hashes)
    return held


async def draining_ends(probe: EngineProbe) -> None:
    """Draining refuses new jobs, ends the running ones, then ends `batches`; twice is once."""
    running = probe.submit(probe.job(stopping=ENDLESS, credit=0))[0]
    await asyncio.sleep(0)
    drains = [asyncio.create_task(probe.engine.drain(probe.quiet_s)) for _ in range(2)]
    await asyncio.sleep(0)
    late = probe.submit(probe.job())[0]
    await probe.ends(running, late)
    probe.equal("a job that came too late", late.why()[0], "error")
    if probe.needs("credit"):
        probe.equal("a job that was running", running.why(), ("abort", "drain"))
    await probe.within(asyncio.gather(*drains), "the end of drain()")
    await probe.within(probe.has_ended.wait(), "the end of batches()")
    await probe.within(probe.engine.drain(0), "a third drain()")
    probe.true("ready after draining", not probe.engine.status().ready)
    probe.engine.submit([probe.job(prompt=TokenIds(probe.prompts[0]))])


FLOW: tuple[Law, ...] = (
    an_abort_ends,
    an_abort_of_one_choice,
    an_abort_of_nothing,
    interleaved_equals_alone,
    choices_are_seeded,
    credit_is_kept,
    the_cap_holds,
    status_is_true,
    events_add_up,
    draining_ends,
)
