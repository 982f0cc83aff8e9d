"""Groups of ranks, each a process: whatever lies where, the tokens of one device; in one step."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

pytest.importorskip("torch")

from tests.plugins.engines.cuda.driving import engine, run
from tests.plugins.engines.cuda.parallel.loops import Seen, serve_part
from tests.plugins.engines.cuda.parallel.ranks import run_ranks
from tests.plugins.engines.cuda.test_matrix import MODELS, jobs

pytestmark = pytest.mark.torch

DRAFTS = {"tokens": 3, "longest": 3, "shortest": 1}
EVERYTHING = {"long_prefill_tokens": 3, "overlap": True, "graphs": True, "speculation": DRAFTS}


def group(layout: str, model: str, stages, *more: Any, **fields: Any) -> list[Seen]:
    fields["path"] = str(MODELS[model]())
    return run_ranks(layout, serve_part, fields, stages, *more)


@cache
def alone(model: str) -> dict[tuple[str, int], list[int]]:
    found = run(engine(MODELS[model]()), *jobs())
    return {key: answer.ids for key, answer in found.items()}


def named(seen: list[Seen]) -> dict[str, dict[tuple[str, int], list[int]]]:
    """By prefix of the job's name."""
    found: dict[str, dict[tuple[str, int], list[int]]] = {}
    for each in seen:
        for (name, choice), (ids, _) in each.get("answers", {}).items():
            prefix, _, own = name.rpartition(":")
            found.setdefault(prefix, {})[own, choice] = ids
    return found


def same_as_alone(seen: list[Seen], model: str, *prefixes: str) -> None:
    found = named(seen)
    assert set(found) == set(prefixes)
    for prefix in prefixes:
        assert found[prefix] == alone(model), prefix
    assert len({each["passes"] for each in seen}) == 1
    assert not any(each.get("broken") for each in seen)


@pytest.mark.parametrize("layout", ["DEP_2", "TP_2", "TP_2 x DEP_2"])
@pytest.mark.parametrize("model", ["qwen3_moe", "llama"])
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
