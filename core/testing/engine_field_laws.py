"""What a card declares is honoured: one law for each capability. Each is silent where it is not."""

from __future__ import annotations

from tokenwire.core.testing.engine_delta_laws import Law
from tokenwire.core.testing.engine_probe import EngineProbe
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


async def honours_logprobs(probe: EngineProbe) -> None:
    """One entry an id: its own value and rank, the likeliest in order, the ids asked for."""
    if not probe.needs("logprobs"):
        return probe.skip()
    wanted = probe.prompts[0][0]
    for mode in ("raw", "sampled"):
        asked = LogprobSettings(top=3, ids=TokenIds((wanted,)), mode=mode)
        answer = await probe.run_one(logprobs=asked)
        probe.ended_well(answer)
        for delta in answer.deltas:
            ids = [entry.id for entry in delta.logprobs]
            probe.equal("ids of logprobs", ids, list(delta.ids))
        for entry in answer.logprobs:
            _check_entry(probe, entry, 3)
            probe.true("an id that was asked for", wanted in (id for id, _ in entry.top))
    bare = await probe.run_one(logprobs=LogprobSettings())
    probe.equal("entries with top 0", len(bare.logprobs), len(bare.ids))
    without = await probe.run_one()
    probe.equal("entries where none are asked for", without.logprobs, [])


def _check_entry(probe: EngineProbe, entry: IdLogprobs, top: int) -> None:
    values = [value for _, value in entry.top[:top]]
    probe.true(f"logprob {entry.logprob}", entry.logprob <= 1e-4)
    probe.equal("order of top", values, sorted(values, reverse=True))
    probe.true(f"{len(entry.top)} in top, asked for {top}", len(entry.top) >= top)
    probe.equal("ids in top twice", len({id for id, _ in entry.top}), len(entry.top))
    if entry.rank == 1:
        probe.equal("the likeliest id", entry.top[0][0], entry.id)


async def honours_prompt_logprobs(probe: EngineProbe) -> None:
    """One entry a prompt token on the first delta, the first of them None."""
    if not probe.needs("prompt_logprobs"):
        return probe.skip()
    answer = await probe.run_one(logprobs=LogprobSettings(prompt=1))
    found = answer.deltas[0].prompt_logprobs
    probe.true("no prompt logprobs on the first delta", found is not None)
    entries = found or ()
    probe.equal("the first prompt token's", entries[:1], (None,))
    ids = [entry.id for entry in entries[1:] if entry is not None]
    probe.equal("ids of prompt logprobs", ids, list(answer.job.prompt[1:]))
    later = [delta.prompt_logprobs for delta in answer.deltas[1:]]
    probe.equal("prompt logprobs on later deltas", later, [None] * len(later))


async def honours_logit_bias(probe: EngineProbe) -> None:
    """A large bias is always chosen, a large negative one never."""
    if not probe.needs("logit_bias"):
        return probe.skip()
    wanted = probe.prompts[0][0]
    loved = await probe.run_one(sampling=_greedy(logit_bias={wanted: FAR}))
    probe.equal(f"ids with a bias for {wanted}", loved.ids, [wanted] * probe.tokens)
    plain = await probe.run_one()
    hated = await probe.run_one(sampling=_greedy(logit_bias={plain.ids[0]: -FAR}))
    probe.true(f"{plain.ids[0]} was chosen against a bias", plain.ids[0] not in hated.ids)


async def honours_allowed_ids(probe: EngineProbe) -> None:
    """Nothing but the allowed ids is chosen, greedy or not."""
    if not probe.needs("allowed_ids"):
        return probe.skip()
    allowed = TokenIds(dict.fromkeys(probe.prompts[1][:3]))
    for temperature in (0.0, 1.0):
        sampling = JobSampling(temperature=temperature, allowed_ids=allowed)
        answer = await probe.run_one(sampling=sampling)
        probe.equal("number of ids", len(answer.ids), probe.tokens)
        probe.true(f"{answer.ids}, allowed {list(allowed)}", {*answer.ids} <= {*allowed})


async def honours_penalties(probe: EngineProbe) -> None:
    """With a frequency or presence penalty beyond any logit, no id comes twice."""
    if not probe.needs("penalties"):
        return probe.skip()
    for sampling in (_greedy(frequency_penalty=FAR), _greedy(presence_penalty=FAR)):
        answer = await probe.run_one(sampling=sampling)
        probe.ended_well(answer)
        probe.equal("ids that came twice", len(answer.ids) - len({*answer.ids}), 0)


async def honours_min_p(probe: EngineProbe) -> None:
    """min_p 1 leaves the likeliest alone, at any temperature."""
    if not probe.needs("min_p"):
        return probe.skip()
    plain = await probe.run_one()
    answer = await probe.run_one(sampling=JobSampling(temperature=2.0, min_p=1.0, seed=5))
    probe.equal("ids with min_p 1", answer.ids, plain.ids)


async def honours_top_k(probe: EngineProbe) -> None:
    """top_k 1, and a top_p near 0, leave the likeliest alone, at any temperature."""
    plain = await probe.run_one()
    for narrow in (JobSampling(temperature=2.0, top_k=1), JobSampling(temperature=2.0, top_p=1e-9)):
        answer = await probe.run_one(sampling=narrow)
        probe.equal(f"ids with {narrow}", answer.ids, plain.ids)


async def honours_seed(probe: EngineProbe) -> None:
    """The same seed gives the same ids."""
    if not probe.needs("seed"):
        return probe.skip()
    sampling = JobSampling(temperature=1.5, seed=-123456789)
    first, second = await probe.run(probe.job(sampling=sampling), probe.job(sampling=sampling))
    probe.equal("ids of the same seed", second.ids, first.ids)


async def honours_resume(probe: EngineProbe) -> None:
    """resume_ids count as output: what follows is what would have followed, to the same total."""
    if not probe.needs("resume"):
        return probe.skip()
    for sampling in (JobSampling(temperature=0.0), JobSampling(temperature=1.0, seed=9)):
        whole = await probe.run_one(sampling=sampling)
        done = TokenIds(whole.ids[:3])
        rest = await probe.run_one(sampling=sampling, resume_ids=done)
        probe.equal("ids after resuming", rest.ids, whole.ids[3:])
        probe.equal("finish after resuming", rest.why(), whole.why())
        over = await probe.run_one(sampling=sampling, resume_ids=TokenIds(whole.ids))
        probe.equal("ids after resuming what was whole", over.ids, [])
        probe.equal("finish of what was whole", over.why(), whole.why())


async def honours_reasoning_budget(probe: EngineProbe) -> None:
    """At the budget the choice ends, or the forced ids come, flagged and counted."""
    if not probe.needs("reasoning_budget") or probe.tokens < 5:
        return probe.skip()
    plain = (await probe.run_one()).ids
    other = [id for id in range(probe.card.vocab_size) if id not in plain][:3]
    ends, forced = TokenIds(other[:2]), TokenIds((other[2], other[0]))
    thinking = ReasoningBudget(open=True, end_ids=ends, budget=2)
    answer = await probe.run_one(reasoning=thinking)
    probe.equal("finish at the budget", answer.why(), ("length", FinishCause.BUDGET.value))
    probe.equal("ids at the budget", len(answer.ids), 2)
    thinking = ReasoningBudget(
        open=True, end_ids=ends, budget=2, on_budget="force", force_ids=forced
    )
    answer = await probe.run_one(reasoning=thinking)
    probe.equal("ids 2 and 3", answer.ids[2:4], list(forced))
    probe.equal("ids flagged as forced", answer.forced, list(forced))
    probe.equal("ids in all", len(answer.ids), probe.tokens)


async def honours_deadline(probe: EngineProbe) -> None:
    """When the time is over, abort(deadline)."""
    if not probe.needs("deadline", "credit"):
        return probe.skip()
    stopping = JobStopping(ignore_eos=True)
    answer = await probe.run_one(stopping=stopping, credit=0, deadline_ms=20)
    probe.equal("finish at the deadline", answer.why(), ("abort", "deadline"))


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
