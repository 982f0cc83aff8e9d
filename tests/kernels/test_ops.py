"""Choosing implementations: by reason, by priority, by objective, by name; and the distances."""

from __future__ import annotations

import math

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from tokenwire.kernels.compare import BOUNDS, bound, distance, metric  # noqa: E402
from tokenwire.kernels.op import Implementation, Op, Signature, Traits  # noqa: E402
from tokenwire.kernels.ops import Ops, all_ops  # noqa: E402
from tokenwire.kernels.registry import choose, preferred  # noqa: E402
from tokenwire.kernels.support import triton_reason, vendor_reason  # noqa: E402

GPU = Signature(device="cuda", capability=(9, 0), dtype=torch.bfloat16, head_dim=128)


def made(name, priority=0, reason="", traits=None):
    traits = traits or Traits()
    return Implementation(name, lambda: name, lambda signature: reason, traits, priority)


def test_the_highest_priority_that_applies_is_chosen_and_the_others_say_why_not():
    op = Op("op", (made("reference"), made("slow", 1), made("fast", 2, "no GPU")))
    function, choice = choose(op, Signature())
    assert (function, choice.name, choice.rejected) == ("slow", "slow", {"fast": "no GPU"})


def test_determinism_goes_before_speed_where_it_is_the_objective():
    loose = Traits(batch_invariant=False)
    op = Op("op", (made("reference"), made("fast", 2, traits=loose)))
    assert preferred(op, Signature())[1].name == "fast"
    assert preferred(op, Signature(), objective="determinism")[1].name == "reference"


def test_an_override_is_taken_or_refused_in_words():
    op = Op("op", (made("reference"), made("fast", 2), made("gpu", 3, "no GPU")))
    assert choose(op, Signature(), override="reference")[0] == "reference"
    with pytest.raises(ValueError, match="'gpu' was asked for and does not apply: no GPU"):
        choose(op, Signature(), override="gpu")
    with pytest.raises(ValueError, match="no implementation 'x'; it has: reference, fast, gpu"):
        choose(op, Signature(), override="x")


def test_an_op_has_a_reference_and_no_name_twice():
    with pytest.raises(ValueError, match="'reference'"):
        Op("op", (made("fast"),))
    with pytest.raises(ValueError, match="one name"):
        Op("op", (made("reference"), made("reference")))


@pytest.mark.parametrize("op", all_ops(), ids=lambda op: op.name)
def test_a_reference_supports_everything_and_loads(op):
    reference = op.implementation("reference")
    for signature in (Signature(), GPU, Signature(dtype=torch.float64, head_dim=7)):
        assert reference.supports(signature) == ""
    assert callable(op.reference)


@pytest.mark.parametrize("op", all_ops(), ids=lambda op: op.name)
@pytest.mark.parametrize(
    "signature",
    [
        Signature(),
        Signature(interpret=True),
        Signature(device="cuda", capability=(7, 5), dtype=torch.float16),
        Signature(device="cuda"),
        GPU,
        Signature(device="mps", dtype=torch.int8, kv_dtype=torch.float8_e4m3fn, head_dim=3),
    ],
    ids=["cpu", "interpreter", "old", "unknown", "gpu", "odd"],
)
def test_supports_answers_and_never_raises(op, signature):
    for one in op.implementations:
        assert isinstance(one.supports(signature), str)


def test_reasons_name_what_lacks():
    assert triton_reason(Signature()) == "needs a CUDA device, not 'cpu'"
    old = Signature(device="cuda", capability=(7, 5), dtype=torch.float16)
    assert triton_reason(old) == "needs compute capability 8.0, the GPU has 7.5"
    assert "TRITON_INTERPRET=1" in triton_reason(Signature(interpret=True))
    assert triton_reason(Signature(device="cuda", dtype=torch.float64)) == "no kernel for float64"
    assert vendor_reason("none-such", "none_such_module", GPU) == (
        "none-such is not installed: pip install none-such"
    )


def test_ops_hold_a_callable_for_every_op_and_the_choices():
    ops = Ops.choose(Signature(), environ={})
    assert [choice.op for choice in ops.choices] == [op.name for op in all_ops()]
    for op in all_ops():
        assert callable(getattr(ops, op.name))
        assert preferred(op, GPU)[1].name in {one.name for one in op.implementations}


def test_the_environment_goes_before_configuration_and_both_are_checked():
    signature = Signature(dtype=torch.float32)
    environ = {"TOKENWIRE_KERNEL_RMS_NORM": "triton"}
    with pytest.raises(ValueError, match="rms_norm: 'triton' was asked for and does not apply"):
        Ops.choose(signature, {"rms_norm": "reference"}, environ=environ)
    with pytest.raises(ValueError, match="no op is called 'rms'"):
        Ops.choose(signature, {"rms": "reference"}, environ={})
    chosen = Ops.choose(signature, {"rms_norm": "reference"}, environ={})
    assert {choice.op: choice.why for choice in chosen.choices}["rms_norm"] == (
        "named by configuration"
    )


def test_the_metric_has_no_scale_and_sees_nan_infinity_and_sign():
    x = torch.tensor([3.0, -4.0], dtype=torch.float64)
    assert metric(x, x) == 0.0
    assert metric(x, -x) == 2.0
    assert metric(1000 * x, 1001 * x) == pytest.approx(metric(x, 1.001 * x))
    # The same as 1 - 2<x,y> / (<x,x> + <y,y>).
    y = torch.tensor([3.0, -5.0])
    assert metric(x, y) == pytest.approx(1 - 2 * 29 / (25 + 34))
    assert metric(torch.zeros(2), torch.zeros(2)) == 0.0
    assert math.isnan(metric(x, torch.tensor([3.0, math.nan])))
    ends = torch.tensor([math.inf, 1.0])
    assert metric(ends, ends) == 0.0
    assert metric(ends, -ends) == math.inf
    with pytest.raises(ValueError, match="two shapes"):
        metric(x, torch.zeros(3))


def test_the_largest_difference():
    x = torch.tensor([1.0, math.inf, 5.0])
    assert distance(x, torch.tensor([1.5, math.inf, 4.0])).max_abs == 1.0
    assert distance(torch.zeros(0), torch.zeros(0)).max_abs == 0.0


def test_bounds_grow_with_rounding_and_integers_must_agree():
    ordered = [bound(d) for d in (torch.float32, torch.float16, torch.bfloat16)]
    assert ordered == sorted(ordered)
    assert set(BOUNDS) >= {torch.float32, torch.float16, torch.bfloat16}
    assert bound(torch.int64) == 0.0
