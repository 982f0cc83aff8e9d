"""8-bit products of rows that are quantised already, masked ones, and the vendor's calls."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib import import_module
from types import ModuleType, SimpleNamespace

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from tokenwire.kernels.fp8_grouped_matmul import OPS  # noqa: E402
from tokenwire.kernels.fp8_grouped_matmul.reference import (  # noqa: E402
    fp8_grouped_matmul,
    fp8_grouped_matmul_masked,
)
from tokenwire.kernels.fp8_matmul.reference import fp8_matmul  # noqa: E402
from tokenwire.kernels.fp8_quant.reference import fp8_quant  # noqa: E402
from tokenwire.kernels.grouped_matmul.cases import offsets_of  # noqa: E402
from tokenwire.kernels.op import Signature  # noqa: E402
from tokenwire.kernels.silu_mul_quant.reference import silu_mul_quant  # noqa: E402

EXPERTS, COLUMNS, WIDTH = 3, 200, 300
COUNTS = [2, 0, 3]


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


def experts():
    w = torch.randn(EXPERTS, COLUMNS, WIDTH).to(torch.float8_e4m3fn)
    return w, torch.rand(EXPERTS, 2, 3) + 0.5


def test_rows_that_are_quantised_already_give_the_same_products() -> None:
    x, (w, scales), offsets = torch.randn(5, WIDTH), experts(), offsets_of(COUNTS)
    q, x_scales = fp8_quant(x)
    kind = {"dtype": torch.float32}
    assert torch.equal(
        fp8_matmul(q, w[0], scales[0], x_scales, **kind), fp8_matmul(x, w[0], scales[0])
    )
    whole = fp8_grouped_matmul(x, w, scales, offsets)
    assert torch.equal(fp8_grouped_matmul(q, w, scales, offsets, x_scales, **kind), whole)
    assert fp8_grouped_matmul(q, w, scales, offsets, x_scales).dtype == torch.bfloat16


@pytest.mark.parametrize("quantised", [False, True])
def test_masked_experts_are_contiguous_ones_and_leave_the_rest(quantised) -> None:
    room, (w, scales) = torch.randn(EXPERTS, 4, WIDTH), experts()
    counts, y = torch.tensor(COUNTS, dtype=torch.int32), torch.full((EXPERTS, 4, COLUMNS), 7.0)
    x, x_scales = room, None
    if quantised:
        q, flat = fp8_quant(room.flatten(0, 1))
        x, x_scales = q.view(room.shape), flat.view(EXPERTS, 4, -1)
    fp8_grouped_matmul_masked(x, w, scales, counts, y, x_scales)
    rows = torch.cat([room[expert, :count] for expert, count in enumerate(COUNTS)])
    wanted = fp8_grouped_matmul(rows, w, scales, offsets_of(COUNTS))
    found = torch.cat([y[expert, :count] for expert, count in enumerate(COUNTS)])
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-4)
    for expert, count in enumerate(COUNTS):
        assert bool((y[expert, count:] == 7.0).all())


def test_gating_and_quantising_at_once_loses_what_quantising_loses() -> None:
    x = torch.randn(4, 600).bfloat16()
    q, scales = silu_mul_quant(x)
    gate, up = x.double().chunk(2, -1)
    wanted = gate / (1 + torch.exp(-gate)) * up
    spread = scales.repeat_interleave(128, 1)[:, :300]
    assert q.dtype == torch.float8_e4m3fn
    # A 28th of the group's largest, and bfloat16's rounding before it.
    assert bool(((q.float() * spread - wanted).abs() <= spread * 448 * (1 / 28 + 1 / 128)).all())


# --- a vendor's ----------------------------------------------------------------------------------

HOPPER = Signature(device="cuda", capability=(9, 0), dtype=torch.bfloat16)


def played_deep_gemm(unit: int = 8):
    """A few lines of torch; what its kernels compute is proven on a GPU."""
    played = ModuleType("deep_gemm")
    played.__spec__ = SimpleNamespace(name="deep_gemm")

    def product(a, b, expert, rows):
        (x, x_scales), (w, scales) = a, b
        one = fp8_matmul(x[rows], w[expert], scales[expert], x_scales[rows], dtype=torch.float32)
        return one.to(torch.bfloat16)

    def contiguous(a, b, d, m_indices):
        assert m_indices.dtype == torch.int32
        assert a[0].shape[0] == a[1].shape[0] == d.shape[0] == len(m_indices)
        assert len(m_indices) % unit == 0
        for first in range(0, len(m_indices), unit):
            rows = slice(first, first + unit)
            whose = set(m_indices[rows].tolist())
            assert len(whose - {-1}) <= 1, "two experts share a tile"
            if (expert := int(m_indices[first])) >= 0:
                d[rows] = product(a, b, expert, rows)
            else:
                assert whose == {-1}, "a tile begins with nobody's row"

    def masked(a, b, d, masked_m, expected_m):
        assert masked_m.dtype == torch.int32
        assert 0 < expected_m <= a[0].shape[1]
        for expert, count in enumerate(masked_m.tolist()):
            rows = expert, slice(0, count)
            d[rows] = product(a, b, expert, rows)

    played.get_mk_alignment_for_contiguous_layout = lambda: unit
    played.m_grouped_fp8_gemm_nt_contiguous = contiguous
    played.m_grouped_fp8_gemm_nt_masked = masked
    return played


@pytest.fixture
def adapter(monkeypatch):
    pytest.importorskip("triton", reason="no Triton for this platform")
    place = "tokenwire.kernels.fp8_grouped_matmul.deep_gemm"
    monkeypatch.setitem(sys.modules, "deep_gemm", played_deep_gemm())
    monkeypatch.delitem(sys.modules, place, raising=False)
    yield import_module(place)
    monkeypatch.delitem(sys.modules, place)


@pytest.mark.parametrize("counts", [COUNTS, [0, 0, 0], [8, 16, 1], [0, 17, 0]])
@pytest.mark.parametrize("more", [0, 3])
def test_deep_gemm_gets_each_expert_at_a_tile_of_its_own(adapter, counts, more) -> None:
    """`more` rows are nobody's."""
    rows, (w, scales), offsets = sum(counts), experts(), offsets_of(counts)
    q, x_scales = fp8_quant(torch.randn(rows + more, WIDTH))
    found = adapter.fp8_grouped_matmul(q, w, scales, offsets, x_scales)
    wanted = fp8_grouped_matmul(q, w, scales, offsets, x_scales)
    assert found.shape == wanted.shape
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found[:rows], wanted[:rows])


def test_deep_gemm_gets_masked_rows_with_their_scales(adapter) -> None:
    (w, scales), counts = experts(), torch.tensor(COUNTS, dtype=torch.int32)
    q, flat = fp8_quant(torch.randn(EXPERTS * 4, WIDTH))
    x, x_scales = q.view(EXPERTS, 4, WIDTH), flat.view(EXPERTS, 4, -1)
    y = torch.ones(EXPERTS, 4, COLUMNS, dtype=torch.bfloat16)
    wanted = y.clone()
    adapter.fp8_grouped_matmul_masked(x, w, scales, counts, y, x_scales)
    fp8_grouped_matmul_masked(x, w, scales, counts, wanted, x_scales)
    torch.testing.assert_close(y, wanted)


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_deep_gemm_says_where_it_does_not_fit(op, monkeypatch) -> None:
    one = op.implementation("deep_gemm")
    assert "is not installed" in one.supports(HOPPER)
    monkeypatch.setitem(sys.modules, "deep_gemm", played_deep_gemm())
    assert one.supports(HOPPER) == ""
    assert "powers of two" in one.supports(replace(HOPPER, capability=(10, 0)))
    assert "no kernel for float32" in one.supports(replace(HOPPER, dtype=torch.float32))
