"""Attention: the reference against float64 without paging, the CPU's kernels against both."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")
attention = pytest.importorskip("tokenwire.kernels.attention")
cases = pytest.importorskip("tests.kernels.attention_cases")
reference = pytest.importorskip("tokenwire.kernels.attention.reference")
from tokenwire.kernels.compare import distance  # noqa: E402
from tokenwire.kernels.op import Signature  # noqa: E402

PREFILL, DECODE = attention.OPS
METRIC = {torch.float32: 1e-6, torch.bfloat16: 1e-4}
LARGEST = {torch.float32: 2e-5, torch.bfloat16: 2e-2}
"""Absolute: of values about 1, rounded once to the dtype."""
PREFILLS = [(0, 0), (1, 1), (5, 5), (1, 9), (3, 0), (7, 15), (16, 16), (17, 17), (4, 40)]
DECODES = [(1, length) for length in (0, 1, 2, 15, 16, 17, 31, 32, 33, 65, 130)]


def callables(op):
    for one in op.implementations:
        if one.name.startswith(("cpu", "reference")):
            yield pytest.param(op, one, id=f"{op.name}-{one.name}")


EVERY = [*callables(PREFILL), *callables(DECODE)]


def function_of(one, dtype=torch.float32, dim=32):
    reason = one.supports(Signature(dtype=dtype, head_dim=dim, heads=4, kv_heads=2, block_size=16))
    if reason:
        pytest.skip(reason)
    return one.load()


def shapes_of(op):
    return PREFILLS if op is PREFILL else DECODES


def check(case, out, dtype=torch.float32, **options) -> None:
    expected = cases.dense(case, **options)
    assert out.dtype == dtype
    assert out.shape == case.q.shape
    apart = distance(out, expected)
    assert apart.metric <= METRIC[dtype]
    assert apart.max_abs <= LARGEST[dtype]


def run(function, case, **options):
    return function(case.q, case.k_cache, case.v_cache, case.batch, case.scale, **options)


@pytest.mark.parametrize(("op", "one"), EVERY)
@pytest.mark.parametrize("block_size", [1, 16])
@pytest.mark.parametrize("window", [0, 1, 7, 200])
def test_lengths_blocks_and_windows(op, one, block_size: int, window: int) -> None:
    case = cases.made(shapes_of(op), block_size=block_size, window=window)
    check(case, run(function_of(one), case, window=window), window=window)


@pytest.mark.parametrize(("op", "one"), EVERY)
@pytest.mark.parametrize(("heads", "kv_heads"), [(1, 1), (3, 3), (9, 3), (8, 1)])
@pytest.mark.parametrize("dim", [16, 24, 128])
def test_groups_and_head_dims(op, one, heads: int, kv_heads: int, dim: int) -> None:
    case = cases.made(shapes_of(op)[-4:], heads=heads, kv_heads=kv_heads, dim=dim)
    check(case, run(function_of(one, dim=dim), case))


@pytest.mark.parametrize(("op", "one"), EVERY)
@pytest.mark.parametrize("window", [0, 9])
@pytest.mark.parametrize("softcap", [0.0, 2.0])
@pytest.mark.parametrize("with_sinks", [False, True])
def test_softcaps_and_sinks(op, one, window: int, softcap: float, with_sinks: bool) -> None:
    sinks = torch.tensor([0.5, -30.0, 3.0, 40.0]) if with_sinks else None
    case = cases.made(shapes_of(op), window=window)
    options = {"window": window, "softcap": softcap, "sinks": sinks}
    check(case, run(function_of(one), case, **options), **options)


@pytest.mark.parametrize(("op", "one"), EVERY)
def test_bfloat16(op, one) -> None:
    case = cases.made(shapes_of(op), dtype=torch.bfloat16)
    out = run(function_of(one, torch.bfloat16), case)
    check(case, out, torch.bfloat16)


@pytest.mark.parametrize(("op", "one"), EVERY)
def test_stored_keys_and_values_are_scaled(op, one) -> None:
    case = cases.made(shapes_of(op))
    options = {"k_scale": 0.25, "v_scale": 3.0}
    check(case, run(function_of(one), case, **options), **options)


@pytest.mark.parametrize(("op", "one"), [each for each in EVERY if "native" not in str(each.id)])
def test_fp8_caches(op, one) -> None:
    case = cases.made(shapes_of(op), kv_dtype=torch.float8_e4m3fn)
    options = {"k_scale": 0.5, "v_scale": 2.0}
    check(case, run(function_of(one), case, **options), **options)


@pytest.mark.parametrize(
    ("op", "one"), [each for each in EVERY if each.values[1].traits.batch_invariant]
)
def test_rows_do_not_depend_on_their_company(op, one) -> None:
    function = function_of(one)
    case = cases.made(shapes_of(op))
    whole = run(function, case)
    for order in ([8, 5, 1, 7, 4], [6], list(reversed(range(9)))):
        other, rows = cases.permuted(case, order)
        assert torch.equal(run(function, other), whole[rows])


@pytest.mark.parametrize(("op", "one"), EVERY)
def test_queries_may_be_a_view(op, one) -> None:
    case = cases.made(shapes_of(op))
    rows, heads, dim = case.q.shape
    wide = torch.full((rows, heads + 2, dim), float("nan"))
    wide[:, :heads] = case.q
    out = one.load()(wide[:, :heads], case.k_cache, case.v_cache, case.batch, case.scale)
    check(case, out)


@pytest.mark.parametrize("options", [{}, {"window": 70}, {"softcap": 2.0}, {"window": 275}])
def test_long_chunks_on_the_cpu(options) -> None:
    """Longer than one mask, with keys before them and without."""
    case = cases.made([(260, 260), (270, 280)], window=options.get("window", 0))
    out = run(function_of(PREFILL.implementation("cpu")), case, **options)
    expected = run(reference.attention, case, **options)
    assert distance(out, expected).max_abs <= LARGEST[torch.float32]


def test_threads_change_no_bit() -> None:
    function = function_of(DECODE.implementation("cpu_native"))
    case = cases.made(DECODES)
    alone = run(function, case)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert torch.equal(run(function, case), alone)
        one, rows = cases.permuted(case, [9])
        assert torch.equal(run(function, one), alone[rows])
    finally:
        torch.set_num_threads(before)


def test_parts_merge_to_the_whole() -> None:
    generator = torch.Generator().manual_seed(1)
    scores, values = torch.randn(3, 5, 40, generator=generator), torch.randn(40, 8)
    cuts = [slice(0, 7), slice(7, 7), slice(7, 40)]
    outs = torch.stack([torch.softmax(scores[..., c], -1) @ values[c] for c in cuts])
    lses = torch.stack([torch.logsumexp(scores[..., c], -1) for c in cuts])
    out, lse = reference.merge_states(outs, lses)
    assert distance(out, torch.softmax(scores, -1) @ values).max_abs < 1e-6
    assert distance(lse, torch.logsumexp(scores, -1)).max_abs < 1e-6


def test_no_part_with_keys_merges_to_zeros() -> None:
    outs = torch.full((2, 3, 4), float("nan"))
    out, lse = reference.merge_states(outs, torch.full((2, 3), float("-inf")))
    assert torch.equal(out, torch.zeros(3, 4))
    assert bool((lse == float("-inf")).all())


def test_the_log_sum_leaves_sinks_out() -> None:
    case = cases.made([(3, 20)])
    sinks = torch.tensor([0.5, -30.0, 3.0, 40.0])
    plain, lse = run(reference.attend, case)
    sunk, same = run(reference.attend, case, sinks=sinks)
    assert torch.equal(lse, same)
    gate = torch.sigmoid(lse - sinks)[..., None]
    assert distance(sunk, plain * gate).max_abs < 1e-6


def test_what_the_compiled_decode_cannot_take_is_said() -> None:
    native = DECODE.implementation("cpu_native")
    assert "one dtype" in native.supports(Signature(dtype=torch.float16, head_dim=64))
    assert "multiple of 8" in native.supports(Signature(head_dim=20))
    assert "CPU" in native.supports(Signature(device="cuda", head_dim=64))
    case = cases.made([(1, 5)], kv_dtype=torch.bfloat16)
    function = function_of(native)
    with pytest.raises(TypeError, match="one dtype"):
        run(function, case)
    with pytest.raises(ValueError, match="multiple of 8 numbers, not 4"):
        run(function, cases.made([(1, 5)], dim=4))
