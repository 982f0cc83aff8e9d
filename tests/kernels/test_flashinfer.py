"""The adapters of flashinfer-python call it as it documents: it is played by a few lines of torch.

What its kernels compute is proven on a GPU, by `tokenwire kernels check`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from tokenwire.kernels.check import check  # noqa: E402
from tokenwire.kernels.grid import cases  # noqa: E402
from tokenwire.kernels.op import Implementation  # noqa: E402


def norm(x, weight, eps):
    return (x.float() * (x.float().pow(2).mean(-1, keepdim=True) + eps).rsqrt() * weight).to(
        x.dtype
    )


def rmsnorm(input, weight, eps):
    assert input.dim() == 2
    return norm(input, weight.float(), eps)


def gemma_rmsnorm(input, weight, eps):
    assert input.dim() == 2
    return norm(input, weight.float() + 1, eps)


def fused_add_rmsnorm(input, residual, weight, eps):
    residual.add_(input)
    input.copy_(norm(residual, weight.float(), eps))


def gemma_fused_add_rmsnorm(input, residual, weight, eps):
    fused_add_rmsnorm(input, residual, weight.float() + 1, eps)


def apply_rope_with_cos_sin_cache_inplace(
    positions, query, key, head_size, cos_sin_cache, is_neox=True
):
    assert is_neox
    assert cos_sin_cache.dtype == torch.float32
    half = cos_sin_cache.shape[1] // 2
    cos, sin = cos_sin_cache[positions].unsqueeze(1).split(half, dim=-1)
    for x in (query, key):
        heads = x.view(x.shape[0], -1, head_size)
        one, two = (heads[..., start : start + half].float().clone() for start in (0, half))
        heads[..., :half] = (one * cos - two * sin).to(x.dtype)
        heads[..., half : 2 * half] = (two * cos + one * sin).to(x.dtype)


def silu_and_mul(input):
    gate, up = input.float().chunk(2, dim=-1)
    return (torch.nn.functional.silu(gate) * up).to(input.dtype)


def gelu_tanh_and_mul(input):
    gate, up = input.float().chunk(2, dim=-1)
    return (torch.nn.functional.gelu(gate, approximate="tanh") * up).to(input.dtype)


def append_paged_kv_cache(
    append_key, append_value, batch_indices, positions, paged_kv_cache, kv_indices, kv_indptr,
    kv_last_page_len, kv_layout="NHD",
):  # fmt: skip
    assert kv_layout == "NHD"
    for numbers in (batch_indices, positions, kv_indices, kv_indptr, kv_last_page_len):
        assert numbers.dtype == torch.int32
    size = paged_kv_cache[0].shape[1]
    pages = int(kv_indptr[-1])
    assert kv_last_page_len.tolist() == [size]
    for row, position in enumerate(positions.tolist()):
        page = int(kv_indptr[batch_indices[row]]) + position // size
        assert 0 <= page < pages
        for rows, cache in zip((append_key, append_value), paged_kv_cache, strict=True):
            cache[kv_indices[page], position % size] = rows[row]


MODULES = {
    "norm": (rmsnorm, gemma_rmsnorm, fused_add_rmsnorm, gemma_fused_add_rmsnorm),
    "rope": (apply_rope_with_cos_sin_cache_inplace,),
    "activation": (silu_and_mul, gelu_tanh_and_mul),
    "page": (append_paged_kv_cache,),
}
FOLDERS = {
    "rms_norm": "rms_norm",
    "add_rms_norm": "rms_norm",
    "rope": "rope",
    "silu_mul": "silu_mul",
    "gelu_mul": "gelu_mul",
    "kv_write": "kv_write",
}


@pytest.fixture(autouse=True)
def _played(monkeypatch):
    package = ModuleType("flashinfer")
    monkeypatch.setitem(sys.modules, "flashinfer", package)
    for name, functions in MODULES.items():
        module = ModuleType(f"flashinfer.{name}")
        for function in functions:
            setattr(module, function.__name__, function)
        setattr(package, name, module)
        monkeypatch.setitem(sys.modules, module.__name__, module)
    for folder in FOLDERS.values():
        monkeypatch.delitem(sys.modules, f"tokenwire.kernels.{folder}.flashinfer", raising=False)


@pytest.mark.parametrize("name", FOLDERS)
def test_an_adapter_gives_what_the_reference_gives(name):
    [(op, every)] = cases([name])
    real = op.implementation("flashinfer")
    adapter = getattr(import_module(f"tokenwire.kernels.{FOLDERS[name]}.flashinfer"), name)
    anywhere = Implementation("flashinfer", lambda: adapter, traits=real.traits)
    ran = 0
    for case in every:
        # The vendor appends to a cache of the activations' dtype alone.
        if case.signature.cache_dtype == case.signature.dtype:
            report = check(op, anywhere, case, device="cpu")
            assert report.faults == (), report.line()
            ran += 1
    assert ran
