"""Whether decode steps are captured: asked for, or by default; and what kernels have against it."""

from __future__ import annotations

from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")

from tokenwire.core.errors import ConfigError  # noqa: E402
from tokenwire.kernels.op import Signature  # noqa: E402
from tokenwire.kernels.ops import Ops  # noqa: E402
from tokenwire.plugins.engines.cuda.graphs import CAPTURED, graph_sizes, has_graphs  # noqa: E402

pytestmark = pytest.mark.torch

GPU, CPU = torch.device("cuda"), torch.device("cpu")


def ops(*unsafe: str) -> Ops:
    """As of a GPU: all but `unsafe` may be captured."""
    found = Ops.choose(Signature(), {}, environ={})
    choices = [replace(each, graph_safe=each.op not in unsafe) for each in found.choices]
    return replace(found, choices=tuple(choices))


def test_a_gpu_has_graphs_where_its_kernels_allow_them() -> None:
    assert has_graphs(None, GPU, ops())
    assert not has_graphs(False, GPU, ops())
    assert not has_graphs(None, GPU, ops("attention_decode"))
    assert has_graphs(True, GPU, ops("attention_prefill", "sample")), "they are not captured"


def test_a_kernel_that_cannot_be_captured_is_named() -> None:
    with pytest.raises(ConfigError, match=r"graphs: kv_write by \w+ cannot be captured"):
        has_graphs(True, GPU, ops("kv_write"))


def test_a_cpu_pads_where_it_is_asked_to() -> None:
    assert not has_graphs(None, CPU, ops())
    assert has_graphs(True, CPU, ops(*CAPTURED))


def test_references_that_wait_for_the_device_are_not_safe() -> None:
    names = dict.fromkeys(CAPTURED, "reference")
    found = Ops.choose(Signature(), names, environ={})
    unsafe = {each.op for each in found.choices if not each.graph_safe and each.op in CAPTURED}
    assert unsafe == {"kv_write", "attention_decode"}


@pytest.mark.parametrize("largest", [1, 2, 3, 8, 100, 256, 300])
def test_every_batch_has_a_size(largest: int) -> None:
    sizes = graph_sizes(largest)
    assert sizes[-1] == largest
    assert list(sizes) == sorted(set(sizes))
