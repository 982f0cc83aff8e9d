"""What a leader tells its followers: every array of a pass, and nothing else."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.plugins.engines.cuda.policy.rig import SIZE, Rig  # noqa: E402
from tokenwire.core.tokens import JobSampling  # noqa: E402
from tokenwire.plugins.engines.cuda.inputs import Inputs, blank, pass_of, prepare  # noqa: E402
from tokenwire.plugins.engines.cuda.parallel.told import Told, read_told, write_told  # noqa: E402
from tokenwire.plugins.engines.cuda.results import PromptWish  # noqa: E402
from tokenwire.plugins.engines.cuda.rows import Rows  # noqa: E402

pytestmark = pytest.mark.torch


def step(adapter: int):
    """Two that decode and one in its prompt, in two KV groups."""
    rig = Rig(windows=(0, 8))
    rows = Rows(8, 64, (0, 8), SIZE)
    known = [rig.add(5), rig.add(7)]
    rig.step()
    known.append(rig.add(9))
    for seq in known:
        rows.take(seq, JobSampling(), adapter)
    plan = rig.schedule()
    return pass_of(prepare(plan.rows, plan.decode_rows, rows, SIZE), rows, SIZE, span=16)


def same(ours, theirs) -> None:
    for each in fields(ours):
        one, other = getattr(ours, each.name), getattr(theirs, each.name)
        if isinstance(one, Inputs):
            same(one, other)
        elif isinstance(one, tuple):
            pairs = zip(one, other, strict=True)
            assert all(np.array_equal(a, b) and a.dtype == b.dtype for a, b in pairs)
        else:
            assert np.array_equal(one, other), each.name
            assert getattr(one, "dtype", None) == getattr(other, "dtype", None)


@pytest.mark.parametrize("adapter", [0, 2])
def test_a_pass_arrives_as_it_was(adapter: int) -> None:
    made = step(adapter)
    assert (made.adapters is None) == (adapter == 0)
    wishes = [PromptWish(2, (4, 5, 6), 1, ())]
    told = read_told(write_told(made, wishes))
    assert told.made is not None
    same(made, told.made)
    assert told.prompts == ((2, 3),)


def test_what_arrives_is_torchs_to_write() -> None:
    """It warns of memory that nobody may write."""
    told = read_told(write_told(blank(2, 4)))
    assert told.made is not None
    same(blank(2, 4), told.made)
    torch.from_numpy(told.made.inputs.ids)


def test_a_sign_of_life_is_no_pass_and_no_end() -> None:
    assert write_told(None)
    assert read_told(write_told(None)) == Told()
