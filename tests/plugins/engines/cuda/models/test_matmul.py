"""Products in 16 bits on a CPU that has no instructions for them."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from tokenwire.kernels.matmul import widened as wide  # noqa: E402
from tokenwire.plugins.engines.cuda.layers import matmul  # noqa: E402

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("tokens", [1, 3, 4, 9])
@pytest.mark.parametrize("biased", [False, True])
def test_widened_products_are_exact_ones_rounded_once(dtype, tokens, biased, monkeypatch) -> None:
    monkeypatch.setattr(wide, "CHUNK", 64 * 40)
    torch.manual_seed(0)
    x, weight = torch.randn(tokens, 40).to(dtype), torch.randn(150, 40).to(dtype)
    bias = torch.randn(150).to(dtype) if biased else None
    exact = x.double() @ weight.double().T + (bias.double() if biased else 0)
    found = wide.widened(x, weight, bias)
    assert found.dtype == dtype
    torch.testing.assert_close(
        found.double(), exact, atol=0.02, rtol=torch.finfo(dtype).eps * (1 if tokens >= 4 else 2)
    )


def test_full_floats_and_gpus_are_left_to_torch() -> None:
    linear = torch.nn.functional.linear
    assert matmul.choose_product(torch.device("cpu"), torch.float32) is linear
    assert matmul.choose_product(torch.device("cuda"), torch.bfloat16) is linear


@pytest.mark.parametrize("outputs", [48, 50])
def test_a_settled_weight_multiplies_as_before(outputs) -> None:
    torch.manual_seed(0)
    x, weight = torch.randn(5, 24), torch.randn(outputs, 24)
    exact = x @ weight.T
    product = matmul.settle(weight, torch.nn.functional.linear)
    torch.testing.assert_close(product(x, weight, None), exact)
