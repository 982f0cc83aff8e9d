"""The references against formulas written out in another way, in float64."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from tokenwire.kernels.fp8_matmul.reference import fp8_matmul  # noqa: E402
from tokenwire.kernels.fp8_quant.cases import exact_rows  # noqa: E402
from tokenwire.kernels.fp8_quant.reference import fp8_quant  # noqa: E402
from tokenwire.kernels.gelu_mul.reference import gelu_mul  # noqa: E402
from tokenwire.kernels.kv_write.reference import kv_write  # noqa: E402
from tokenwire.kernels.rms_norm.reference import add_rms_norm, rms_norm  # noqa: E402
from tokenwire.kernels.rope.reference import rope  # noqa: E402
from tokenwire.kernels.silu_mul.reference import silu_mul  # noqa: E402
from tokenwire.kernels.swiglu_clamped.reference import swiglu_clamped  # noqa: E402


def near(got, wanted, *, atol=1e-5):
    """float32 against float64."""
    torch.testing.assert_close(got.double(), wanted, rtol=1e-5, atol=atol)


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


@pytest.mark.parametrize("offset", [0.0, 1.0])
def test_rms_norm_leaves_a_mean_square_of_one_times_the_weight(offset):
    x, weight = torch.randn(4, 3, 64) * 7, torch.randn(64)
    wide = x.double()
    wanted = wide / (wide.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt() * (weight.double() + offset)
    near(rms_norm(x, weight, 1e-6, offset), wanted)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_fused_norm_is_the_sum_and_then_the_norm_to_the_bit(dtype):
    x, residual = torch.randn(5, 32).to(dtype), torch.randn(5, 32).to(dtype)
    weight, total = torch.randn(32).to(dtype), x + residual
    y, after = add_rms_norm(x, residual, weight, 1e-5, 1.0)
    assert after is residual
    assert torch.equal(residual, total)
    assert torch.equal(y, rms_norm(total, weight, 1e-5, 1.0))


def test_rope_turns_pairs_as_complex_numbers_and_leaves_the_rest_of_a_head():
    angles = torch.rand(9, 4, dtype=torch.float64) * 6
    table = torch.cat([angles.cos(), angles.sin()], dim=-1).float()
    positions = torch.tensor([8, 0, 3])
    q, k = torch.randn(3, 2, 10), torch.randn(3, 1, 10)
    before = [q.clone(), k.clone()]
    assert rope(q, k, positions, table) == (q, k)
    for now, then in zip((q, k), before, strict=True):
        pairs = torch.complex(then[..., :4].double(), then[..., 4:8].double())
        turned = pairs * torch.exp(1j * angles[positions]).unsqueeze(1)
        near(now[..., :4], turned.real)
        near(now[..., 4:8], turned.imag)
        assert torch.equal(now[..., 8:], then[..., 8:])


def test_gated_activations():
    x = torch.randn(3, 2, 20, dtype=torch.float64).flatten(1)
    gate, up = x.chunk(2, dim=-1)
    near(silu_mul(x), gate / (1 + torch.exp(-gate)) * up)
    inner = (2 / torch.pi) ** 0.5 * (gate + 0.044715 * gate**3)
    wanted = gate / 2 * (1 + torch.tanh(inner)) * up
    near(gelu_mul(x), wanted)
    low, held = torch.minimum(gate, gate.new_tensor(0.7)), up.clamp(-0.7, 0.7)
    near(swiglu_clamped(x, 1.5, 0.7), (held + 1) * low / (1 + torch.exp(-1.5 * low)))
    near(swiglu_clamped(x * 9), swiglu_clamped(x * 9, 1.702, 7.0))


def test_kv_write_writes_the_slots_and_no_other():
    k, v = torch.randn(4, 2, 3), torch.randn(4, 2, 3)
    caches = torch.full((2, 3, 4, 2, 3), torch.nan)
    kv_write(k, v, caches[0], caches[1], torch.tensor([5, -1, 11, 0]))
    for rows, cache in zip((k, v), caches, strict=True):
        flat = cache.reshape(12, 2, 3)
        assert torch.equal(flat[[5, 11, 0]], rows[[0, 2, 3]])
        assert int(flat.isnan().all(-1).all(-1).sum()) == 9


def test_kv_write_into_8_bit_floats_divides_by_the_scale_and_saturates():
    k = torch.tensor([[[1.0, -3.0, 1e6, -1e6]]])
    caches = torch.zeros(2, 1, 1, 1, 4).to(torch.float8_e4m3fn)
    kv_write(k, k, caches[0], caches[1], torch.tensor([0]), 0.5, 2.0)
    assert caches[0].float().flatten().tolist() == [2.0, -6.0, 448.0, -448.0]
    assert caches[1].float().flatten().tolist() == [0.5, -1.5, 448.0, -448.0]


@pytest.mark.parametrize("width", [128, 300, 512])
def test_fp8_quant_loses_at_most_a_28th_of_a_groups_largest_number(width):
    x = torch.randn(6, width)
    q, scales = fp8_quant(x)
    assert q.dtype == torch.float8_e4m3fn
    assert scales.shape == (6, -(-width // 128))
    spread = scales.repeat_interleave(128, dim=1)[:, :width]
    largest = spread * 448
    assert bool(((q.float() * spread - x).abs() <= largest / 28 * 1.0001).all())


def test_fp8_quant_keeps_zeros_and_what_the_format_holds():
    x = exact_rows(3, 300, torch.float32)
    q, scales = fp8_quant(x)
    assert torch.equal(q.float() * scales.repeat_interleave(128, dim=1)[:, :300], x)
    q, scales = fp8_quant(torch.zeros(2, 128))
    assert not q.float().any()
    assert bool((scales > 0).all())


def test_fp8_matmul_is_the_product_of_what_was_quantised():
    x = exact_rows(3, 300, torch.float32)
    w = torch.randn(200, 300).to(torch.float8_e4m3fn)
    scales = torch.rand(2, 3) + 0.5
    wanted = torch.zeros(3, 200, dtype=torch.float64)
    for row, column in ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)):
        rows, columns = slice(128 * row, 128 * (row + 1)), slice(128 * column, 128 * (column + 1))
        part = x[:, columns].double() @ w[rows, columns].double().T
        wanted[:, rows] += part * float(scales[row, column])
    near(fp8_matmul(x, w, scales), wanted, atol=1e-4)
