"""Groups of ranks, each a process: whatever lies where, the tokens of one device; in one step."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from msgspec.structs import replace

pytest.importorskip("torch")

from tests.plugins.engines.cuda.driving import Answer, engine, job, run
from tests.plugins.engines.cuda.faulty import Faulty
from tests.plugins.engines.cuda.parallel.loops import Seen, serve_part
from tests.plugins.engines.cuda.parallel.ranks import run_ranks
from tests.plugins.engines.cuda.test_matrix import LONG, MODELS, SIZE, jobs
from tokenwire.core.tokens import Abort, Credit, FinishKind, LogprobSettings, TokenJob
from tokenwire.plugins.engines.cuda.parallel.mesh import Mesh
from tokenwire.plugins.engines.cuda.passes import Passes

pytestmark = pytest.mark.torch

DRAFTS = {"tokens": 3, "longest": 3, "shortest": 1}
EVERYTHING = {"long_prefill_tokens": 3, "overlap": True, "graphs": True, "speculation": DRAFTS}
BAD = 77


def group(layout: str, model: str, stages, *more: Any, **fields: Any) -> list[Seen]:
    fields["path"] = str(MODELS[model]())
    return run_ranks(layout, serve_part, fields, stages, *more)


@cache
def alone(model: str) -> dict[tuple[str, int], list[int]]:
    found = run(engine(MODELS[model]()), *jobs())
    return {key: answer.ids for key, answer in found.items()}


def answers(seen: list[Seen]) -> dict[tuple[str, int], Answer]:
    return {key: value for each in seen for key, value in each.get("answers", {}).items()}


def same_as_alone(seen: list[Seen], model: str, *prefixes: str) -> None:
    """Jobs are named by their prefix, a colon, and the name of one of `alone`."""
    found: dict[str, dict[tuple[str, int], list[int]]] = {}
    for (name, choice), answer in answers(seen).items():
        prefix, _, own = name.rpartition(":")
        found.setdefault(prefix, {})[own, choice] = answer.ids
    assert set(found) == set(prefixes)
    for prefix in prefixes:
        assert found[prefix] == alone(model), prefix
    in_step(seen)


def in_step(seen: list[Seen]) -> None:
    """Every rank, whether it had jobs or not, made as many passes."""
    assert len({each["passes"] for each in seen}) == 1


@pytest.mark.parametrize(
    ("layout", "model"),
    [
        ("DEP_2", "qwen3_moe"),
        ("TP_2", "qwen3_moe"),
        ("TP_2", "llama"),
        ("TP_2 x DEP_2", "qwen3_moe"),
    ],
)
@pytest.mark.parametrize("fields", [{}, EVERYTHING], ids=["plain", "everything"])
def test_a_group_gives_the_tokens_of_one_device(layout: str, model: str, fields) -> None:
    """Jobs on all parts, then on the last alone, then on the first alone."""
    last = 0 if layout == "TP_2" else 1
    everywhere = [jobs(f"{part}:") for part in range(last + 1)]
    only = [[] for _ in range(last)] + [jobs("last:")]
    seen = group(layout, model, [everywhere, only, [jobs("first:")]], **fields)
    parts = [str(part) for part in range(last + 1)]
    same_as_alone(seen, model, *parts, "last", "first")
    cards = [each["card"] for each in seen if "card" in each]
    assert all(card == cards[0] for card in cards)


@pytest.mark.parametrize("fields", [{}, EVERYTHING], ids=["plain", "everything"])
def test_parts_without_jobs_make_the_passes_of_the_others(fields) -> None:
    stages = [[[], jobs("1:"), [], jobs("3:")], [[], [], jobs("2:")], [[]]]
    seen = group("DEP_4", "qwen3_moe", stages, redundant_experts=2, **fields)
    same_as_alone(seen, "qwen3_moe", "1", "2", "3")


@pytest.mark.parametrize(
    ("layout", "fields"),
    [
        ("DEP_2", {"overlap": True, "speculation": DRAFTS}),
        ("TP_2", {}),
        ("TP_2", {"overlap": True}),
    ],
)
def test_preempted_sequences_give_the_same_tokens(layout: str, fields) -> None:
    """On one part, which pushes its own sequences out again and again; the other has a few."""
    slices = 2 if layout == "TP_2" else 1
    kv_gib = 13 * SIZE * 3 * 2 * 2 * 8 * 4 / 2**30 / slices
    many = [replace(each, expected_tokens=0) for index in range(3) for each in jobs(f"{index}:")]
    few = [jobs("few:")] if layout == "DEP_2" else []
    seen = group(layout, "qwen3_moe", [[many, *few]], kv_gib=kv_gib, max_model_len=40, **fields)
    assert seen[0]["status"].preemptions > 0
    same_as_alone(seen, "qwen3_moe", "0", "1", "2", *("few" for _ in few))


@pytest.mark.parametrize(("layout", "overlap"), [("DEP_2", True), ("TP_2", False)])
def test_a_job_that_is_aborted_changes_no_other(layout: str, overlap: bool) -> None:
    endless = job("endless", LONG[:5], max_tokens=100)
    stages = [[[endless, *jobs("with:")]], [jobs("after:")]]
    seen = group(layout, "qwen3_moe", stages, {"endless": (4, Abort("endless"))}, overlap=overlap)
    aborted = seen[0]["answers"].pop(("endless", 0))
    assert aborted.finish.kind is FinishKind.ABORT
    assert len(aborted.ids) < 100
    same_as_alone(seen, "qwen3_moe", "with", "after")


def test_a_part_whose_client_is_slow_keeps_nobody_from_hearing_of_it() -> None:
    """It alone hears of the credit, in a group that has nothing to compute until then."""
    held = [replace(each, job=f"held:{each.job}", credit=3) for each in jobs() if each.n == 1]
    given = {each.job: (3, Credit(each.job, 100)) for each in held}
    seen = group("DEP_2", "qwen3_moe", [[[], held]], given)
    in_step(seen)
    for (name, choice), answer in answers(seen).items():
        assert answer.ids == alone("qwen3_moe")[name.removeprefix("held:"), choice]


def test_scores_come_over_the_slices() -> None:
    """Those of prompts too, which the slices make together beside the pass."""
    scored = [
        job("a", LONG, logprobs=LogprobSettings(top=3, prompt=2)),
        job("b", LONG[:6], logprobs=LogprobSettings(top=1)),
    ]
    wanted = run(engine(MODELS["llama"]()), *scored)
    seen = group("TP_2", "llama", [[scored]], long_prefill_tokens=8, overlap=True)
    in_step(seen)
    for key, answer in answers(seen).items():
        assert answer.ids == wanted[key].ids
        pairs = list(zip(answer.logprobs, wanted[key].logprobs, strict=True))
        prompts = [each.deltas[0].prompt_logprobs or () for each in (answer, wanted[key])]
        pairs += list(zip(*prompts, strict=True))[1:]
        assert all(
            ours.logprob == pytest.approx(theirs.logprob, abs=1e-4) for ours, theirs in pairs
        )


# --- faults ---------------------------------------------------------------------------------------


def break_last(mesh: Mesh, passes: Passes) -> None:
    if mesh.rank == mesh.layout.gpus - 1:
        passes.model = Faulty(passes.model, calls=frozenset({5}))


def break_first(mesh: Mesh, passes: Passes) -> None:
    if mesh.rank == 0:
        passes.model = Faulty(passes.model, calls=frozenset({5}))


def poison(mesh: Mesh, passes: Passes) -> None:
    passes.model = Faulty(passes.model, nan_ids=frozenset({BAD}))


@pytest.mark.parametrize(
    ("layout", "overlap", "change"),
    [
        ("DEP_2", True, break_first),
        ("DEP_2", False, break_last),
        ("TP_2", True, break_first),
        ("TP_2", True, break_last),
        ("TP_2", False, break_last),
        ("TP_2 x DEP_2", True, break_last),
    ],
)
def test_a_rank_that_fails_ends_the_group_and_says_why(layout, overlap: bool, change) -> None:
    """Be it a leader, whose part has no jobs or has them, or a follower."""
    with pytest.raises(AssertionError, match="the test's fault"):
        group(layout, "qwen3_moe", [[jobs("0:")]], {}, change, overlap=overlap)


@pytest.mark.parametrize("layout", ["DEP_2", "TP_2"])
def test_a_row_with_nan_ends_alone(layout: str) -> None:
    bad = job("bad", [5, 17, 99, 42, BAD])
    stages: list[list[list[TokenJob]]] = [[[bad, *jobs("0:")]], [jobs("1:")]]
    seen = group(layout, "llama", stages, {}, poison)
    failed = seen[0]["answers"].pop(("bad", 0))
    assert failed.finish.kind is FinishKind.ERROR
    assert "NaN" in failed.finish.message
    same_as_alone(seen, "llama", "0", "1")
