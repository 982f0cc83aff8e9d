"""One full sample of every message of the token-ID interface: no field is left at its default."""

from __future__ import annotations

from typing import Any

__all__ = ("samples",)


def samples(tokens: Any, ids: Any) -> dict[str, Any]:
    """Built from whichever version's module `tokens`, with its TokenIds class `ids`."""
    t = tokens
    card = t.EngineCard(
        model="m",
        vocab_size=49152,
        context_length=8192,
        revision="r1",
        fingerprints={"vocabulary": "aa", "added_tokens": "bb"},
        eos_ids=(2, 7),
        block_size=32,
        hash_scheme="kvb1x",
        hash_root="00ff",
        kv_layout=t.KvLayout("bf16", 30, 3, 64, 32, "mla"),
        role="prefill",
        parallel="TP_2",
        zone="z1",
        adapters=(t.Adapter("lora", "2"),),
        media=t.MediaProcessor("siglip", "3"),
        tasks=("generate", "embed"),
        capabilities=("n", "credit"),
        credit_cap=64,
    )
    finish = t.Finish(
        t.FinishKind.ERROR,
        t.FinishCause.LOST,
        ids((2, 3)),
        retryable=True,
        replay_safe=True,
        message="gone",
    )
    logprobs = t.IdLogprobs(5, -0.5, 2, ((4, -0.25), (5, -0.5)))
    handoff = t.Handoff("room", "peer", "ticket")
    delta = t.TokenDelta(
        job="j",
        at=3,
        attempt=1,
        choice=2,
        ids=ids((1, 4294967295)),
        logprobs=(logprobs, logprobs),
        prompt_logprobs=(None, logprobs),
        vectors=((0.5, 1.5),),
        scores=(0.25,),
        forced=True,
        counts=t.Counts(9, 4, 5, 5),
        handoff=handoff,
        finish=finish,
    )
    job = t.TokenJob(
        job="j",
        model="m",
        prompt=ids(range(300)),
        attempt=1,
        task="embed",
        adapter=t.Adapter("lora", "2"),
        n=3,
        sampling=t.JobSampling(0.0, 0.9, 40, 0.1, 0.2, 0.3, 1.1, -5, {7: -100.0}, ids((1, 2))),
        stopping=t.JobStopping(64, 2, ids((2,)), (ids((5, 6)),), True),
        reasoning=t.ReasoningBudget(True, ids((1,)), ids((2,)), 100, "force", ids((3,))),
        constraint=t.Constraint("regex", "a+", "after_ids", ids((9,))),
        logprobs=t.LogprobSettings(5, ids((1,)), 2, "sampled"),
        kv=t.KvSettings("salt", "kvb1x"),
        phase="decode",
        handoff=handoff,
        media=(t.MediaItem("image", "ab", 4, 16, (224, 224), "ref", b"\x00\xff"),),
        priority=-1,
        deadline_ms=1500,
        expected_tokens=32,
        resume_ids=ids((8, 9)),
        credit=128,
        annotations={"script": "one"},
        trace=t.TraceContext("00-a-b-01", "x=y"),
    )
    status = t.EngineStatus(card, False, "loading", 1, 2, 100, 50, True)
    return {
        "card": card,
        "status": status,
        "job": job,
        "delta": delta,
        "link": t.Link(7, (delta,)),
        "abort": t.Abort("j", 1, t.AbortReason.DEADLINE),
        "credit": t.Credit("j", 256),
        "release": t.Release("ticket"),
        "stored": t.BlockStored(1, ("aa", "bb"), "cc", "host"),
        "removed": t.BlockRemoved(2, ("aa",), "disk"),
        "snapshot": t.BlockSnapshot(3, ("bb",), "host"),
    }
