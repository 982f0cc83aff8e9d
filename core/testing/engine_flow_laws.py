"""Laws 5 to 8 of the engine port: aborts, isolation, credit, status, events, the end."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from tokenwire.core import seeds
from tokenwire.core.testing.engine_bench import Answer, EngineBench
from tokenwire.core.testing.engine_delta_laws import Law
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


async def an_abort_ends(bench: EngineBench) -> None:
    """Law 5: within one step, with the reason; what it held is free; the others go on."""
    free = bench.engine.status().kv_blocks_free
    for reason in (AbortReason.CLIENT, AbortReason.STOP_TEXT, AbortReason.DEADLINE):
        answer, other = bench.submit(bench.job(stopping=ENDLESS), bench.job())
        await bench.begins(answer)
        seen = len(answer.deltas)
        bench.engine.control([Abort(answer.job.job, reason=reason)])
        await bench.ends(answer, other)
        bench.equal("finish", answer.why(), ("abort", reason.value))
        more = sum(len(delta.ids) > 0 for delta in answer.deltas[seen:])
        bench.true(f"{more} steps after an abort", more <= IN_FLIGHT)
        bench.equal("ids of a job beside it", len(other.ids), bench.tokens)
    await _settled(bench)
    status = bench.engine.status()
    bench.equal("running and waiting after aborts", (status.running, status.waiting), (0, 0))
    bench.equal("free blocks after aborts", status.kv_blocks_free, free)


async def an_abort_of_one_choice(bench: EngineBench) -> None:
    """Law 5: the other choices go on."""
    if not bench.needs("n"):
        return bench.skip()
    first, second = bench.submit(bench.job(n=2))
    bench.engine.control([Abort(first.job.job, choice=1)])
    await bench.ends(first, second)
    bench.equal("the aborted choice's finish", second.why(), ("abort", "client"))
    bench.equal("the other choice's ids", len(first.ids), bench.tokens)


async def an_abort_of_nothing(bench: EngineBench) -> None:
    """Law 5: aborting what is over or unknown does nothing."""
    over = await bench.run_one()
    bench.engine.control([Abort(over.job.job), Abort("no such job"), Credit("no such job", 5)])
    after = await bench.run_one()
    await bench.rest()
    bench.equal("finishes of a job that was over", _finishes(over), 1)
    bench.equal("deltas of unknown jobs", bench.strays, [])
    bench.equal("the next job's ids", len(after.ids), bench.tokens)


def _finishes(answer: Answer) -> int:
    return sum(delta.finish is not None for delta in answer.deltas)


async def interleaved_equals_alone(bench: EngineBench) -> None:
    """Law 6: greedy or by seed, a job gives the same ids whatever runs beside it."""
    kinds = [
        {"prompt": prompt, "sampling": sampling}
        for prompt in bench.prompts
        for sampling in (JobSampling(temperature=0.0), JobSampling(seed=3), JobSampling(seed=4))
    ]
    alone = [(await bench.run_one(**kind)).ids for kind in kinds]
    jobs = [bench.job(**kinds[index % len(kinds)]) for index in range(bench.jobs)]
    answers = await bench.run(*jobs)
    for index, answer in enumerate(answers):
        bench.ended_well(answer)
        bench.equal(f"ids of job {index} of {bench.jobs}", answer.ids, alone[index % len(kinds)])


async def choices_are_seeded(bench: EngineBench) -> None:
    """Law 6: choice k gives what a job of its own gives with seed mix(seed, k)."""
    if not bench.needs("n", "seed"):
        return bench.skip()
    sampling = JobSampling(temperature=1.0, seed=11)
    choices = await bench.run(bench.job(n=3, sampling=sampling))
    for index, choice in enumerate(choices):
        single = await bench.run_one(sampling=replace(sampling, seed=seeds.mix(11, index)))
        bench.equal(f"ids of choice {index}", choice.ids, single.ids)


async def credit_is_kept(bench: EngineBench) -> None:
    """Law 7: no more tokens than credit, over all choices; it goes on when credit comes."""
    if not bench.needs("credit"):
        return bench.skip()
    plain = (await bench.run_one()).ids
    answer = bench.submit(bench.job(credit=2))[0]
    await _arrive(bench, answer, 2)
    await bench.rest()
    bench.equal("ids on a credit of 2", answer.ids, plain[:2])
    bench.true("a finish although ids are missing", answer.finish is None)
    bench.engine.control([Credit(answer.job.job, 1)])
    await _arrive(bench, answer, 3)
    await bench.rest()
    bench.equal("ids on a credit of 2 + 1", answer.ids, plain[:3])
    bench.engine.control([Credit(answer.job.job, bench.tokens)])
    await bench.ends(answer)
    bench.equal("ids on enough credit", answer.ids, plain)
    held = bench.submit(bench.job(credit=0))[0]
    await bench.rest()
    bench.equal("ids on no credit", held.ids, [])
    bench.engine.control([Abort(held.job.job)])
    await bench.ends(held)
    bench.equal("finish of a job without credit", held.why(), ("abort", "client"))


async def the_cap_holds(bench: EngineBench) -> None:
    """Law 7: a job longer than the card's cap, without credit, is whole when credit comes."""
    length = bench.card.credit_cap + 2
    room = bench.card.context_length - len(bench.prompts[0])
    if not bench.needs("credit") or length > min(room, 64):
        return bench.skip()
    stopping = JobStopping(max_tokens=length, ignore_eos=True)
    plain = await bench.run_one(stopping=stopping)
    answer = bench.submit(bench.job(stopping=stopping, credit=0))[0]
    await bench.rest()
    bench.equal("ids on no credit", answer.ids, [])
    bench.engine.control([Credit(answer.job.job, length)])
    await bench.ends(answer)
    bench.equal("ids", answer.ids, plain.ids)


async def _arrive(bench: EngineBench, answer: Answer, count: int) -> None:
    async def arrived() -> None:
        while len(answer.ids) < count:
            answer.moved.clear()
            await answer.moved.wait()

    await bench.within(arrived(), f"{count} ids on credit")


async def status_is_true(bench: EngineBench) -> None:
    """Law 8: what runs is counted, its blocks are not free, and everything comes back."""
    before = bench.engine.status()
    bench.equal("running and waiting, idle", (before.running, before.waiting), (0, 0))
    bench.true("ready, idle", before.ready)
    answer = bench.submit(bench.job(stopping=ENDLESS))[0]
    await bench.begins(answer)
    if answer.finish is None:
        _check_busy(bench, answer.job)
    bench.engine.control([Abort(answer.job.job)])
    await bench.ends(answer)
    await _settled(bench)
    after = bench.engine.status()
    bench.equal("the card", after.card, before.card)
    bench.equal("free blocks, idle again", after.kv_blocks_free, before.kv_blocks_free)


def _check_busy(bench: EngineBench, job: TokenJob) -> None:
    status = bench.engine.status()
    bench.true("a running job is not counted", status.running + status.waiting >= 1)
    total, free = status.kv_blocks_total, status.kv_blocks_free
    if total:
        held = -(-len(job.prompt) // bench.card.block_size)
        bench.true(f"{free} of {total} free while {held} are held", free <= total - held)


async def _settled(bench: EngineBench) -> None:
    """Until status says that nothing runs, for as long as `rest` lasts."""
    for _ in range(20):
        status = bench.engine.status()
        if not status.running and not status.waiting:
            return
        await asyncio.sleep(bench.quiet_s / 20)


async def events_add_up(bench: EngineBench) -> None:
    """KV events: a snapshot first, numbers without a gap, and together what a snapshot says."""
    if not bench.card.hash_root:
        return bench.skip()
    events = bench.engine.events()
    first = await bench.within(anext(events), "a first KV event")
    bench.true(f"the first event is {type(first).__name__}", isinstance(first, BlockSnapshot))
    read = [first]
    reader = asyncio.create_task(_collect(events, read))
    try:
        for prompt in bench.prompts:
            await bench.run_one(prompt=prompt)
        await bench.rest()
        fresh = await bench.within(anext(bench.engine.events()), "a second reader's snapshot")
    finally:
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)
    numbers = [event.seq for event in read]
    bench.equal("numbers", numbers, list(range(numbers[0], numbers[0] + len(numbers))))
    bench.true("no block was stored", len(read) > 1)
    bench.true("the second reader got no snapshot", isinstance(fresh, BlockSnapshot))
    bench.equal("blocks", _replayed(read), set(fresh.hashes))


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


async def draining_ends(bench: EngineBench) -> None:
    """Draining refuses new jobs, ends the running ones, then ends `batches`; twice is once."""
    running = bench.submit(bench.job(stopping=ENDLESS, credit=0))[0]
    await asyncio.sleep(0)
    drains = [asyncio.create_task(bench.engine.drain(bench.quiet_s)) for _ in range(2)]
    await asyncio.sleep(0)
    late = bench.submit(bench.job())[0]
    await bench.ends(running, late)
    bench.equal("a job that came too late", late.why()[0], "error")
    if bench.needs("credit"):
        bench.equal("a job that was running", running.why(), ("abort", "drain"))
    await bench.within(asyncio.gather(*drains), "the end of drain()")
    await bench.within(bench.has_ended.wait(), "the end of batches()")
    await bench.within(bench.engine.drain(0), "a third drain()")
    bench.true("ready after draining", not bench.engine.status().ready)
    bench.engine.submit([bench.job(prompt=TokenIds(bench.prompts[0]))])


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
