"""Whether decode steps are captured: asked for, or by default; and what kernels have against it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

torch = pytest.importorskip("torch")

from tokenwire.core.errors import ConfigError  # noqa: E402
from tokenwire.kernels.op import Signature  # noqa: E402
from tokenwire.kernels.ops import Ops  # noqa: E402
from tokenwire.plugins.engines.cuda.batch import Batch  # noqa: E402
from tokenwire.plugins.engines.cuda.graphs import (  # noqa: E402
    DecodeGraphs,
    captured,
    graph_sizes,
    has_graphs,
)
from tokenwire.plugins.engines.cuda.models.config import (  # noqa: E402
    Mixture,
    Mla,
    ModelConfig,
    Quantisation,
)

pytestmark = pytest.mark.torch

GPU, CPU = torch.device("cuda"), torch.device("cpu")
DENSE = ModelConfig(
    family="any",
    hidden=8,
    intermediate=8,
    layers=1,
    heads=1,
    kv_heads=1,
    head_dim=8,
    vocab_size=8,
    context_length=8,
    rms_eps=1e-6,
    ropes=(),
    rope_of_layer=(0,),
    windows=(0,),
    attention_scale=1.0,
)
LATENT = structs.replace(
    DENSE,
    mla=Mla(0, 4, 4, 4, 4),
    mixture=Mixture(2, 1, 8, (0,)),
    quantisation=Quantisation((128, 128)),
)


def ops(*unsafe: str) -> Ops:
    """As of a GPU: all but `unsafe` may be captured."""
    found = Ops.choose(Signature(), {}, environ={})
    choices = [replace(each, graph_safe=each.op not in unsafe) for each in found.choices]
    return replace(found, choices=tuple(choices))


def test_a_gpu_has_graphs_where_its_kernels_allow_them() -> None:
    assert has_graphs(None, GPU, ops(), DENSE)
    assert not has_graphs(False, GPU, ops(), DENSE)
    assert not has_graphs(None, GPU, ops("attention_decode"), DENSE)
    assert has_graphs(True, GPU, ops("attention_prefill", "sample"), DENSE), "not captured"


def test_only_what_a_model_uses_counts() -> None:
    others = "kv_write", "attention_decode", "gelu_mul"
    assert has_graphs(None, GPU, ops(*others), LATENT)
    eight_bit = "fp8_grouped_matmul", "fp8_matmul", "fp8_quant", "silu_mul_quant"
    assert has_graphs(None, GPU, ops(*eight_bit), LATENT, keeps_fp8=False)
    for op in ("mla_decode", "mla_write", "moe_route", *eight_bit):
        assert not has_graphs(None, GPU, ops(op), LATENT)
        assert has_graphs(None, GPU, ops(op), DENSE)


def test_a_kernel_that_cannot_be_captured_is_named() -> None:
    with pytest.raises(ConfigError, match=r"graphs: kv_write by \w+ cannot be captured"):
        has_graphs(True, GPU, ops("kv_write"), DENSE)


def test_a_cpu_pads_where_it_is_asked_to() -> None:
    assert not has_graphs(None, CPU, ops(), DENSE)
    assert has_graphs(True, CPU, ops(*captured(DENSE)), DENSE)


def test_references_that_wait_for_the_device_are_not_safe() -> None:
    names = captured(DENSE)
    found = Ops.choose(Signature(), dict.fromkeys(names, "reference"), environ={})
    unsafe = {each.op for each in found.choices if not each.graph_safe and each.op in names}
    assert unsafe == {"kv_write", "attention_decode"}


@pytest.mark.parametrize("largest", [1, 2, 3, 8, 100, 256, 300])
def test_every_batch_has_a_size(largest: int) -> None:
    sizes = graph_sizes(largest)
    assert sizes[-1] == largest
    assert list(sizes) == sorted(set(sizes))


@pytest.mark.parametrize(
    ("count", "span", "ran"),
    [(3, 0, 4), (3, 8, 8), (8, 8, 8), (1, 4, 4), (3, 5, None), (9, 0, None), (4, 16, None)],
)
def test_parts_that_share_experts_pad_to_the_agreed_size(count: int, span: int, ran) -> None:
    """A step whose span is no graph's size runs without one: others have a prompt in it."""
    seen: list[tuple[int, int]] = []

    def forward(batch: Batch) -> torch.Tensor:
        seen.append((len(batch.ids), batch.span))
        return batch.ids[:, None].float()

    def made(has_span: bool) -> DecodeGraphs:
        return DecodeGraphs(
            forward,
            sizes=graph_sizes(8),
            width=4,
            groups=1,
            block_size=4,
            max_kv=16,
            device=CPU,
            has_adapters=False,
            has_span=has_span,
        )

    graphs = made(bool(span))
    batch = replace(made(False)._blank(count), ids=torch.arange(count), span=span)
    assert graphs.fits(batch) == (ran is not None)
    if ran is not None:
        assert graphs.run(batch)[:, 0].tolist() == list(range(count))
        assert seen == [(ran, ran if span else 0)]
