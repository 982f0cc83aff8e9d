"""What a card declares is honoured: one law for each capability. Each is silent where it is not."""

from __future__ import annotations

from tokenwire.core.testing.engine_bench import EngineBench
from tokenwire.core.testing.engine_delta_laws import Law
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import (
    FinishCause,
    IdLogprobs,
    JobSampling,
    JobStopping,
    LogprobSettings,
    ReasoningBudget,
)

__all__ = ("FIELDS",)

FAR = 1000.0
"""Beyond any logit."""


async def honours_logprobs(bench: EngineBench) -> None:
    """One entry an id: its own value and rank, the likeliest in order, the ids asked for."""
    if not bench.needs("logprobs"):
        return bench.skip()
    wanted = bench.prompts[0][0]
    for mode in ("raw", "sampled"):
        asked = LogprobSettings(top=3, ids=TokenIds((wanted,)), mode=mode)
        answer = await bench.run_one(logprobs=asked)
        bench.ended_well(answer)
        for delta in answer.deltas:
            ids = [entry.id for entry in delta.logprobs]
            bench.equal("ids of logprobs", ids, list(delta.ids))
        for entry in answer.logprobs:
            _check_entry(bench, entry, 3)
            bench.true("an id that was asked for", wanted in (id for id, _ in entry.top))
    bare = await bench.run_one(logprobs=LogprobSettings())
    bench.equal("entries with top 0", len(bare.logprobs), len(bare.ids))
    without = await bench.run_one()
    bench.equal("entries where none are asked for", without.logprobs, [])


def _check_entry(bench: EngineBench, entry: IdLogprobs, top: int) -> None:
    values = [value for _, value in entry.top[:top]]
    bench.true(f"logprob {entry.logprob}", entry.logprob <= 1e-4)
    bench.equal("order of top", values, sorted(values, reverse=True))
    bench.true(f"{len(entry.top)} in top, asked for {top}", len(entry.top) >= top)
    bench.equal("ids in top twice", len({id for id, _ in entry.top}), len(entry.top))
    if entry.rank == 1:
        bench.equal("the likeliest id", entry.top[0][0], entry.id)


async def honours_prompt_logprobs(bench: EngineBench) -> None:
    """One entry a prompt token on the first delta, the first of them None."""
    if not bench.needs("prompt_logprobs"):
        return bench.skip()
    answer = await bench.run_one(logprobs=LogprobSettings(prompt=1))
    found = answer.deltas[0].prompt_logprobs
    bench.true("no prompt logprobs on the first delta", found is not None)
    entries = found or ()
    bench.equal("the first prompt token's", entries[:1], (None,))
    ids = [entry.id for entry in entries[1:] if entry is not None]
    bench.equal("ids of prompt logprobs", ids, list(answer.job.prompt[1:]))
    later = [delta.prompt_logprobs for delta in answer.deltas[1:]]
    bench.equal("prompt logprobs on later deltas", later, [None] * len(later))


async def honours_logit_bias(bench: EngineBench) -> None:
    """A large bias is always chosen, a large negative one never."""
    if not bench.needs("logit_bias"):
        return bench.skip()
    wanted = bench.prompts[0][0]
    loved = await bench.run_one(sampling=_greedy(logit_bias={wanted: FAR}))
    bench.equal(f"ids with a bias for {wanted}", loved.ids, [wanted] * bench.tokens)
    plain = await bench.run_one()
    hated = await bench.run_one(sampling=_greedy(logit_bias={plain.ids[0]: -FAR}))
    bench.true(f"{plain.ids[0]} was chosen against a bias", plain.ids[0] not in hated.ids)


async def honours_allowed_ids(bench: EngineBench) -> None:
    """Nothing but the allowed ids is chosen, greedy or not."""
    if not bench.needs("allowed_ids"):
        return bench.skip()
    allowed = TokenIds(dict.fromkeys(bench.prompts[1][:3]))
    for temperature in (0.0, 1.0):
        sampling = JobSampling(temperature=temperature, allowed_ids=allowed)
        answer = await bench.run_one(sampling=sampling)
        bench.equal("number of ids", len(answer.ids), bench.tokens)
        bench.true(f"{answer.ids}, allowed {list(allowed)}", {*answer.ids} <= {*allowed})


async def honours_penalties(bench: EngineBench) -> None:
    """With a frequency or presence penalty beyond any logit, no id comes twice."""
    if not bench.needs("penalties"):
        return bench.skip()
    for sampling in (_greedy(frequency_penalty=FAR), _greedy(presence_penalty=FAR)):
        answer = await bench.run_one(sampling=sampling)
        bench.ended_well(answer)
        bench.equal("ids that came twice", len(answer.ids) - len({*answer.ids}), 0)


async def honours_min_p(bench: EngineBench) -> None:
    """min_p 1 leaves the likeliest alone, at any temperature."""
    if not bench.needs("min_p"):
        return bench.skip()
    plain = await bench.run_one()
    answer = await bench.run_one(sampling=JobSampling(temperature=2.0, min_p=1.0, seed=5))
    bench.equal("ids with min_p 1", answer.ids, plain.ids)


async def honours_top_k(bench: EngineBench) -> None:
    """top_k 1, and a top_p near 0, leave the likeliest alone, at any temperature."""
    plain = await bench.run_one()
    for narrow in (JobSampling(temperature=2.0, top_k=1), JobSampling(temperature=2.0, top_p=1e-9)):
        answer = await bench.run_one(sampling=narrow)
        bench.equal(f"ids with {narrow}", answer.ids, plain.ids)


async def honours_seed(bench: EngineBench) -> None:
    """The same seed gives the same ids."""
    if not bench.needs("seed"):
        return bench.skip()
    sampling = JobSampling(temperature=1.5, seed=-123456789)
    first, second = await bench.run(bench.job(sampling=sampling), bench.job(sampling=sampling))
    bench.equal("ids of the same seed", second.ids, first.ids)


async def honours_resume(bench: EngineBench) -> None:
    """resume_ids count as output: what follows is what would have followed, to the same total."""
    if not bench.needs("resume"):
        return bench.skip()
    for sampling in (JobSampling(temperature=0.0), JobSampling(temperature=1.0, seed=9)):
        whole = await bench.run_one(sampling=sampling)
        done = TokenIds(whole.ids[:3])
        rest = await bench.run_one(sampling=sampling, resume_ids=done)
        bench.equal("ids after resuming", rest.ids, whole.ids[3:])
        bench.equal("finish after resuming", rest.why(), whole.why())
        over = await bench.run_one(sampling=sampling, resume_ids=TokenIds(whole.ids))
        bench.equal("ids after resuming what was whole", over.ids, [])
        bench.equal("finish of what was whole", over.why(), whole.why())


async def honours_reasoning_budget(bench: EngineBench) -> None:
    """At the budget the choice ends, or the forced ids come, flagged and counted."""
    if not bench.needs("reasoning_budget") or bench.tokens < 5:
        return bench.skip()
    plain = (await bench.run_one()).ids
    other = [id for id in range(bench.card.vocab_size) if id not in plain][:3]
    ends, forced = TokenIds(other[:2]), TokenIds((other[2], other[0]))
    thinking = ReasoningBudget(open=True, end_ids=ends, budget=2)
    answer = await bench.run_one(reasoning=thinking)
    bench.equal("finish at the budget", answer.why(), ("length", FinishCause.BUDGET.value))
    bench.equal("ids at the budget", len(answer.ids), 2)
    thinking = ReasoningBudget(
        open=True, end_ids=ends, budget=2, on_budget="force", force_ids=forced
    )
    answer = await bench.run_one(reasoning=thinking)
    bench.equal("ids 2 and 3", answer.ids[2:4], list(forced))
    bench.equal("ids flagged as forced", answer.forced, list(forced))
    bench.equal("ids in all", len(answer.ids), bench.tokens)


async def honours_deadline(bench: EngineBench) -> None:
    """When the time is over, abort(deadline)."""
    if not bench.needs("deadline", "credit"):
        return bench.skip()
    stopping = JobStopping(ignore_eos=True)
    answer = await bench.run_one(stopping=stopping, credit=0, deadline_ms=20)
    bench.equal("finish at the deadline", answer.why(), ("abort", "deadline"))


def _greedy(**fields: object) -> JobSampling:
    return JobSampling(temperature=0.0, **fields)  # type: ignore[arg-type]


FIELDS: tuple[Law, ...] = (
    honours_logprobs,
    honours_prompt_logprobs,
    honours_logit_bias,
    honours_allowed_ids,
    honours_penalties,
    honours_min_p,
    honours_top_k,
    honours_seed,
    honours_resume,
    honours_reasoning_budget,
    honours_deadline,
)
