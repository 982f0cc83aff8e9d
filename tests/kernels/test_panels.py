"""Products by weights in panels: the exact ones, rounded, and a row's whatever stands beside it."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from tokenwire.kernels import panels  # noqa: E402
from tokenwire.kernels.native import compiler_reason  # noqa: E402

if compiler_reason(panels.SOURCE):
    pytest.skip(compiler_reason(panels.SOURCE), allow_module_level=True)

DTYPES = [torch.float32, torch.bfloat16]


def case(rows: int, inputs: int, outputs: int, dtype: torch.dtype):
    made = torch.Generator().manual_seed(rows * inputs)
    x = torch.randn(rows, inputs, generator=made).to(dtype)
    weight = torch.randn(outputs, inputs, generator=made).to(dtype)
    bias = torch.randn(outputs, generator=made).to(dtype)
    packed = weight.clone()
    panels.pack(packed)
    return x, weight, bias, packed


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", [0, 1, 5, 6, 11, 100])
@pytest.mark.parametrize(("inputs", "outputs"), [(1, 16), (37, 48), (256, 32)])
def test_products_are_the_exact_ones_rounded_once(dtype, rows, inputs, outputs) -> None:
    x, weight, bias, packed = case(rows, inputs, outputs, dtype)
    for added in (None, bias):
        exact = x.double() @ weight.double().T + (0 if added is None else added.double())
        found = panels.linear(x, packed, added)
        assert found.dtype == dtype
        near = torch.finfo(dtype).eps
        torch.testing.assert_close(found.double(), exact, rtol=near, atol=1e-5 * inputs**0.5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_row_does_not_depend_on_the_others(dtype) -> None:
    x, _, bias, packed = case(103, 70, 64, dtype)
    whole = panels.linear(x, packed, bias)
    before = torch.get_num_threads()
    for begin, end in ((0, 1), (5, 8), (90, 103)):
        for threads in (1, 2):
            torch.set_num_threads(threads)
            part = panels.linear(x[begin:end], packed, bias)
            assert torch.equal(part, whole[begin:end])
    torch.set_num_threads(before)


def test_rows_need_not_lie_side_by_side() -> None:
    x, weight, _, packed = case(8, 32, 16, torch.float32)
    wide = torch.cat((x, x), 1)[:, :32]
    torch.testing.assert_close(panels.linear(wide, packed, None), x @ weight.T)


def test_packing_needs_no_other_memory_and_loses_nothing() -> None:
    _, weight, _, packed = case(1, 24, 48, torch.float32)
    assert torch.equal(packed.view(3, 24, 16).transpose(1, 2).reshape(48, 24), weight)


def test_what_cannot_be_packed_or_multiplied_is_refused() -> None:
    with pytest.raises(ValueError, match="multiple of 16"):
        panels.pack(torch.zeros(17, 8))
    with pytest.raises(ValueError, match="does not go with"):
        panels.linear(torch.zeros(2, 9), torch.zeros(16, 8), None)


def test_other_devices_dtypes_and_wider_cpus_say_why_not(monkeypatch) -> None:
    cpu = torch.device("cpu")
    assert "CPU" in panels.panels_reason(torch.device("cuda"), torch.float32)
    assert "float32 or bfloat16" in panels.panels_reason(cpu, torch.float16)
    monkeypatch.setattr(panels.platform, "machine", lambda: "x86_64")
    for features, word in ((["avx512_f"], "AVX-512"), ([], "")):
        told = dict.fromkeys(["avx2", "fma3", *features], True)
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda told=told: told)
        assert word in panels.panels_reason(cpu, torch.float32)
    monkeypatch.setattr(torch.cpu, "get_capabilities", dict)
    assert "AVX2" in panels.panels_reason(cpu, torch.float32)
