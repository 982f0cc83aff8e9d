"""The mock engine: what it says, how fast, how it fails, what its cache knows, what it logs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest

from tokenwire.core.byte_text import ByteText
from tokenwire.core.host import lone_services
from tokenwire.core.ports.tokenizer import NO_SHIELDS, Tokenizer
from tokenwire.core.script import SCRIPT_VOCABULARY_SIZE
from tokenwire.core.scripts import ScriptBook
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import (
    Adapter,
    Credit,
    JobSampling,
    JobStopping,
    KvSettings,
    LogprobSettings,
    ReasoningBudget,
    TokenDelta,
    TokenJob,
)
from tokenwire.plugins.cache.memory import register_stores
from tokenwire.plugins.engines.mock.build import build
from tokenwire.plugins.engines.mock.engine import MockEngine
from tokenwire.plugins.engines.mock.settings import ANSWER, MockSettings

PROMPT = TokenIds(range(1, 41))


class Bytes(Tokenizer):
    """256 byte ids, and room for scripts."""

    def __init__(self) -> None:
        self.text = ByteText()
        self.vocabulary = self.text.vocabulary(SCRIPT_VOCABULARY_SIZE)

    def encode(self, text, shields=NO_SHIELDS):
        return self.text.encode(text, shields)

    def token_bytes(self, id):
        return self.text.token_bytes(id)


def job(name: str = "j", **fields) -> TokenJob:
    return TokenJob(**({"job": name, "model": "m", "prompt": PROMPT} | fields))


async def collect(engine: MockEngine, *jobs: TokenJob) -> dict[tuple[str, int], list[TokenDelta]]:
    """All deltas of these jobs, by choice, with a new reader."""
    found: dict[tuple[str, int], list[TokenDelta]] = {}
    missing = sum(each.n for each in jobs)
    engine.submit(jobs)
    async for batch in engine.batches():
        for delta in batch:
            found.setdefault((delta.job, delta.choice), []).append(delta)
            missing -= delta.finish is not None
        if not missing:
            break
    return found


def play(*jobs: TokenJob, scripts: dict[str, str] | None = None, **settings):
    async def go():
        services = lone_services()
        (factory, *_) = register_stores()
        book = ScriptBook(factory.build(factory.settings(), services))
        for name, body in (scripts or {}).items():
            await book.put(name, body.encode())
        services = type(services)(services.keys, scripts=book, tokenizer=Bytes(), model="m")
        return await collect(build(MockSettings(**settings), services), *jobs), book

    return asyncio.run(go())


def scripted(body: str, **fields) -> list[TokenDelta]:
    found, _ = play(job(annotations={"script": "s"}, **fields), scripts={"s": body})
    return found["j", 0]


def ids(deltas: list[TokenDelta]) -> list[int]:
    return [id for delta in deltas for id in delta.ids]


def why(deltas: list[TokenDelta]) -> tuple[str, str]:
    finish = deltas[-1].finish
    assert finish is not None
    return finish.kind.value, finish.cause.value


def with_engine(test: Callable[[MockEngine], Awaitable[None]], **settings) -> None:
    async def go() -> None:
        engine = build(MockSettings(**settings), lone_services())
        try:
            await test(engine)
        finally:
            await engine.drain(0)

    asyncio.run(go())


# What it says


def test_unscripted_it_gives_the_fixed_answer_and_eos() -> None:
    found, _ = play(job())
    deltas = found["j", 0]
    assert bytes(ids(deltas)).decode() == ANSWER
    assert why(deltas) == ("stop", "eos")
    assert list(deltas[-1].finish.matched) == list(Bytes().vocabulary.eos_ids)


def test_every_temperature_and_seed_gives_the_same_answer() -> None:
    hot = job(sampling=JobSampling(temperature=2.0, seed=99, top_p=0.5, top_k=3))
    found, _ = play(hot)
    assert bytes(ids(found["j", 0])).decode() == ANSWER


def test_with_eos_ignored_it_repeats_itself() -> None:
    length = 2 * len(ANSWER)
    found, _ = play(job(stopping=JobStopping(ignore_eos=True, max_tokens=length)))
    assert bytes(ids(found["j", 0])).decode() == ANSWER * 2


def test_where_the_prompt_ends_inside_reasoning_it_thinks_first() -> None:
    thinking = ReasoningBudget(open=True, end_ids=TokenIds(list(b"</think>")))
    found, _ = play(job(reasoning=thinking), thought="Hm.", answer="Yes.")
    assert bytes(ids(found["j", 0])) == b"Hm.</think>Yes."


def test_the_card_comes_from_the_tokenizer_and_the_limits() -> None:
    services = lone_services()
    services = type(services)(services.keys, tokenizer=Bytes(), model="m", context_length=77)
    card = build(MockSettings(without=("n",), adapters=("a@r", "b")), services).status().card
    assert card.fingerprints == Bytes().vocabulary.fingerprints
    assert card.eos_ids == Bytes().vocabulary.eos_ids
    assert card.context_length == 77
    assert card.adapters == (Adapter("a", "r"), Adapter("b"))
    assert card.can("adapter")
    assert not card.can("n")


# Scripts


def test_a_script_is_played_step_by_step() -> None:
    deltas = scripted('{"pieces": [["a", "b"], [], "c", {"hex": "f09f"}]}')
    assert [len(delta.ids) for delta in deltas] == [2, 1, 1, 0]
    assert why(deltas) == ("stop", "eos")


@pytest.mark.parametrize(
    ("body", "end", "count"),
    [
        ('{"pieces": ["a", "<eos>"]}', ("stop", "eos"), 1),
        ('{"pieces": ["a"], "finish": "length"}', ("length", "max"), 1),
        ('{"pieces": ["a"], "finish": "abort"}', ("error", "lost"), 1),
        ('{"pieces": ["a", {"engine_error": "lost"}, "b"]}', ("error", "lost"), 1),
        ('{"pieces": ["a", {"engine_error": "odd"}]}', ("error", "odd"), 1),
        ('{"pieces": []}', ("stop", "eos"), 0),
    ],
)
def test_how_a_script_ends(body: str, end: tuple[str, str], count: int) -> None:
    deltas = scripted(body)
    assert why(deltas) == end
    assert len(ids(deltas)) == count


def test_eos_as_the_last_allowed_token_of_a_script() -> None:
    body = '{"pieces": ["a", "b", "<eos>"], "special": {"<eos>": 700}}'
    deltas = scripted(body, stopping=JobStopping(max_tokens=3))
    assert why(deltas) == ("stop", "eos")
    assert list(deltas[-1].finish.matched) == [700]
    deltas = scripted(body, stopping=JobStopping(max_tokens=2))
    assert why(deltas) == ("length", "max")


def test_choices_play_their_own_scripts() -> None:
    body = '{"choices": [{"pieces": ["a", "b"]}, {"pieces": ["c"]}]}'
    found, _ = play(job(annotations={"script": "s"}, n=3), scripts={"s": body})
    assert [len(ids(found["j", choice])) for choice in range(3)] == [2, 1, 2]


def test_a_scripts_logprobs() -> None:
    body = '{"pieces": ["a", "b"], "logprobs": [[-0.5, -0.1, "-inf"], [-0.2, -0.2]]}'
    entries = [
        entry
        for delta in scripted(body, logprobs=LogprobSettings(top=5))
        for entry in delta.logprobs
    ]
    assert [entry.logprob for entry in entries] == [-0.5, -0.2]
    assert entries[0].rank == 2
    assert entries[0].top[0][1] == -0.1
    assert entries[0].top[-1][1] == float("-inf")
    assert entries[1].rank == 1
    assert entries[1].top[0][0] == entries[1].id


def test_a_script_resumes_inside_a_step() -> None:
    body = '{"pieces": [["a", "b", "c"], "d"]}'
    whole = ids(scripted(body))
    rest = scripted(body, resume_ids=TokenIds(whole[:2]))
    assert rest[0].at == 2
    assert ids(rest) == whole[2:]
    assert ids(scripted(body, resume_ids=TokenIds(whole))) == []


def test_a_stop_sequence_inside_a_scripts_step() -> None:
    body = '{"pieces": [["a", "b", "c"], "d"]}'
    whole = ids(scripted(body))
    deltas = scripted(body, stopping=JobStopping(sequences=(TokenIds(whole[1:3]),)))
    assert ids(deltas) == whole[:1]
    assert why(deltas) == ("stop", "sequence")


def test_a_long_script_is_cut_by_the_context_alone() -> None:
    body = '{"pieces": [{"repeat": "x", "times": 3000}]}'
    found, _ = play(
        job(annotations={"script": "s"}), scripts={"s": body}, context_length=2000, kv_blocks=200
    )
    assert why(found["j", 0]) == ("length", "context")
    assert len(ids(found["j", 0])) == 2000 - len(PROMPT)


def test_a_script_that_is_not_loaded_or_needs_another_tokenizer_is_refused() -> None:
    found, book = play(job(annotations={"script": "no"}), scripts={"s": '{"pieces": ["a"]}'})
    assert why(found["j", 0]) == ("error", "refused")

    async def go() -> None:
        services = lone_services()
        engine = build(MockSettings(), type(services)(services.keys, scripts=book))
        found = await collect(engine, job(annotations={"script": "s"}))
        assert "tokenizer" in found["j", 0][0].finish.message

    asyncio.run(go())


# The cache


def test_cached_counts_are_true() -> None:
    async def test(engine: MockEngine) -> None:
        stopping = JobStopping(max_tokens=1)
        reader = engine.batches()

        async def counts(**fields) -> tuple[int, int]:
            engine.submit([job(stopping=stopping, **fields)])
            async for batch in reader:
                if batch[-1].finish is not None:
                    return batch[-1].counts.cached, batch[-1].counts.computed
            raise AssertionError("no finish")

        assert await counts() == (0, 40)
        assert await counts() == (32, 8)
        assert await counts(prompt=PROMPT[:32]) == (16, 16)
        assert await counts(prompt=TokenIds(range(2, 42))) == (0, 40)
        assert await counts(kv=KvSettings(salt="other")) == (0, 40)
        assert await counts(kv=KvSettings(salt="other")) == (32, 8)
        await reader.aclose()

    with_engine(test)


def test_an_answer_is_in_the_cache_for_the_next_turn() -> None:
    async def go() -> None:
        engine = build(MockSettings(), lone_services())
        reader = engine.batches()
        said: list[int] = []
        engine.submit([job(stopping=JobStopping(max_tokens=24))])
        async for batch in reader:
            said += batch[0].ids
            if batch[0].finish is not None:
                break
        engine.submit(
            [job(prompt=TokenIds([*PROMPT, *said, 9]), stopping=JobStopping(max_tokens=1))]
        )
        async for batch in reader:
            if batch[-1].finish is not None:
                # Of 64 tokens so far, the last was never fed to the model.
                assert batch[-1].counts.cached == 48
                break
        await reader.aclose()

    asyncio.run(go())


def test_blocks_run_out_and_all_jobs_still_end_alike() -> None:
    async def go() -> None:
        engine = build(MockSettings(kv_blocks=10, block_size=8), lone_services())
        stopping = JobStopping(max_tokens=30)
        jobs = [
            job(f"j{n}", prompt=TokenIds([n + 1] * 20), stopping=stopping, priority=n % 3)
            for n in range(12)
        ]
        found = await collect(engine, *jobs)
        assert {bytes(ids(deltas)) for deltas in found.values()} == {ANSWER[:30].encode()}
        status = engine.status()
        assert status.kv_blocks_free == status.kv_blocks_total == 10

    asyncio.run(go())


def test_who_waits_for_credit_gives_way_to_who_can_run() -> None:
    async def go() -> None:
        engine = build(MockSettings(kv_blocks=6, block_size=8, credit_cap=16), lone_services())
        long = JobStopping(max_tokens=28, ignore_eos=True)
        held = job("held", prompt=TokenIds([7] * 16), stopping=long, credit=0)
        other = job("other", prompt=TokenIds([8] * 20), stopping=long)
        engine.submit([held, other])
        said: dict[str, list[int]] = {"held": [], "other": []}
        async for batch in engine.batches():
            for delta in batch:
                said[delta.job] += delta.ids
            if len(said["other"]) == 28 and not said["held"]:
                engine.control([Credit("held", 28)])
            if len(said["held"]) == 28:
                break
        assert said["held"] == said["other"] == list(ANSWER[:28].encode())

    asyncio.run(go())


# Scheduling


def test_the_more_urgent_goes_first() -> None:
    async def go() -> None:
        engine = build(MockSettings(max_running=1), lone_services())
        jobs = [job(f"j{n}", priority=n, stopping=JobStopping(max_tokens=2)) for n in range(3)]
        engine.submit(jobs)
        order = []
        async for batch in engine.batches():
            order += [delta.job for delta in batch if delta.finish is not None]
            if len(order) == 3:
                break
        assert order == ["j2", "j1", "j0"]

    asyncio.run(go())


def test_what_cannot_wait_is_refused_as_overloaded() -> None:
    async def go() -> None:
        engine = build(MockSettings(max_running=2, max_waiting=1), lone_services())
        found = await collect(engine, *(job(f"j{n}") for n in range(5)))
        ends = [why(found[f"j{n}", 0]) for n in range(5)]
        assert ends == [("stop", "eos")] * 3 + [("error", "overloaded")] * 2
        finish = found["j4", 0][0].finish
        assert finish.retryable
        assert finish.replay_safe

    asyncio.run(go())


def test_one_step_serves_all_that_run() -> None:
    async def go() -> None:
        engine = build(MockSettings(), lone_services())
        engine.submit([job(f"j{n}") for n in range(50)])
        async for batch in engine.batches():
            assert len(batch) == 50
            break

    asyncio.run(go())


def test_times_are_kept_by_the_loops_clock() -> None:
    async def go() -> None:
        engine = build(MockSettings(ttft_ms=30.0, token_ms=10.0), lone_services())
        clock = asyncio.get_running_loop().time
        started, seen = clock(), []
        engine.submit([job(stopping=JobStopping(max_tokens=3))])
        async for batch in engine.batches():
            seen.append(clock() - started)
            if batch[-1].finish is not None:
                break
        assert len(seen) == 3
        assert seen[0] >= 0.03
        assert seen[2] >= 0.05

    asyncio.run(go())


def test_a_script_can_pause() -> None:
    async def go() -> None:
        clock = asyncio.get_running_loop().time
        started = clock()
        services = lone_services()
        (factory, *_) = register_stores()
        book = ScriptBook(factory.build(factory.settings(), services))
        await book.put("s", b'{"pieces": ["a", {"sleep_s": 0.05}, "b"]}')
        services = type(services)(services.keys, scripts=book, tokenizer=Bytes())
        found = await collect(build(MockSettings(), services), job(annotations={"script": "s"}))
        assert len(ids(found["j", 0])) == 2
        assert clock() - started >= 0.05

    asyncio.run(go())


# Faults


@pytest.mark.parametrize(
    ("annotations", "settings"),
    [
        ({"mock.error_at": "3", "mock.error_cause": "internal"}, {}),
        ({}, {"error_at": 3, "error_cause": "internal"}),
    ],
)
def test_an_error_at_a_token(annotations: dict[str, str], settings: dict[str, object]) -> None:
    found, _ = play(job(annotations=annotations), **settings)
    assert why(found["j", 0]) == ("error", "internal")
    assert len(ids(found["j", 0])) == 3


def test_a_stall_lasts_until_the_deadline() -> None:
    found, _ = play(job(annotations={"mock.stall_at": "2"}, deadline_ms=30))
    assert why(found["j", 0]) == ("abort", "deadline")
    assert len(ids(found["j", 0])) == 2


def test_a_disconnect_loses_all_jobs_and_refuses_new_ones_for_a_while() -> None:
    async def go() -> None:
        engine = build(MockSettings(disconnect_ms=40), lone_services())
        engine.submit([job("a", annotations={"mock.disconnect_at": "2"}), job("b"), job("c", n=2)])
        reader = engine.batches()
        ends: list[TokenDelta] = []
        while len(ends) < 4:
            ends += [delta for delta in await anext(reader) if delta.finish is not None]
        assert {why([delta]) for delta in ends} == {("error", "lost")}
        assert not engine.status().ready
        engine.submit([job("d")])
        (refused,) = await anext(reader)
        assert (refused.job, why([refused])) == ("d", ("error", "lost"))
        await asyncio.sleep(0.05)
        assert engine.status().ready
        await reader.aclose()

    asyncio.run(go())


def test_a_fault_that_is_no_number_is_refused() -> None:
    found, _ = play(job(annotations={"mock.error_at": "soon"}))
    assert why(found["j", 0]) == ("error", "refused")


# The rest of the port


def test_a_second_reader_is_told_so() -> None:
    async def test(engine: MockEngine) -> None:
        reader = engine.batches()
        engine.submit([job()])
        await anext(reader)
        with pytest.raises(RuntimeError, match="one reader"):
            await anext(engine.batches())
        await reader.aclose()

    with_engine(test)


def test_a_job_of_a_name_that_runs_is_refused_and_disturbs_nothing() -> None:
    async def go() -> None:
        engine = build(MockSettings(), lone_services())
        engine.submit([job(), job(attempt=1)])
        first: list[TokenDelta] = []
        async for batch in engine.batches():
            for delta in batch:
                if delta.attempt == 1:
                    assert delta.finish.cause.value == "refused"
                else:
                    first.append(delta)
            if first and first[-1].finish is not None:
                break
        assert bytes(ids(first)).decode() == ANSWER

    asyncio.run(go())


def test_draining_without_a_reader_ends() -> None:
    async def test(engine: MockEngine) -> None:
        engine.submit([job()])
        await engine.drain(5)
        assert not engine.status().ready
        engine.control([Credit("j", 1)])

    with_engine(test)


def test_its_debug_log_shows_ids_and_no_text(caplog: pytest.LogCaptureFixture) -> None:
    secret = "What is in my diary?"
    prompt = TokenIds(list(secret.encode()))
    with caplog.at_level(logging.DEBUG, logger="tokenwire.engine.mock"):
        play(job(secret, prompt=prompt, annotations={"user": secret}, kv=KvSettings(salt=secret)))
    log = "\n".join(record.getMessage() for record in caplog.records)
    assert f"prompt=[{','.join(map(str, prompt))}]" in log
    assert secret not in log
    assert "diary" not in log


def test_without_debug_nothing_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        play(job())
    assert not caplog.records


def test_what_was_said_is_not_counted_again_for_every_id(monkeypatch):
    """Masks alone cost no search among other ids; penalties see repeats of this very output."""
    from tokenwire.plugins.engines.mock import chooser

    drawn = []
    draw = chooser.splitmix64
    monkeypatch.setattr(chooser, "splitmix64", lambda state: drawn.append(state) or draw(state))
    stopping = JobStopping(max_tokens=3000, min_tokens=3000, stop_ids=TokenIds((255,)))
    found, _ = play(job(stopping=stopping), answer="ab")
    ids = [id for delta in found["j", 0] for id in delta.ids]
    assert bytes(ids) == b"ab" * 1500
    assert drawn == []

    sampling = JobSampling(frequency_penalty=2.0)
    stopping = JobStopping(max_tokens=40, ignore_eos=True)
    found, _ = play(job(stopping=stopping, sampling=sampling), answer="a")
    ids = [id for delta in found["j", 0] for id in delta.ids]
    assert ids[:10] == [97] * 10
    assert len(set(ids)) > 1
