"""Filling places from a source: parts of tensors, the same twice, what other ranks have."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from tokenwire.core.errors import ConfigError  # noqa: E402
from tokenwire.plugins.engines.cuda.layers.site import Cut  # noqa: E402
from tokenwire.plugins.engines.cuda.load.filling import fill  # noqa: E402
from tokenwire.plugins.engines.cuda.load.source import Entry, Source  # noqa: E402

pytestmark = pytest.mark.torch

KINDS = {torch.float32: "F32", torch.float8_e4m3fn: "F8_E4M3"}


class Held(Source):
    """Tensors in memory, and which elements of each were asked for."""

    def __init__(self, **tensors) -> None:
        self.tensors, self.asked = tensors, {}

    @property
    def entries(self):
        return {
            name: Entry("file", tuple(each.shape), KINDS[each.dtype], each.nbytes, name)
            for name, each in self.tensors.items()
        }

    def read(self, name, cut=None):
        whole = self.tensors[name]
        found = whole if cut is None else whole.narrow(cut.dim, cut.start, cut.length)
        self.asked[name] = self.asked.get(name, 0) + found.numel()
        return found


def test_a_place_takes_its_part_and_its_doubles_the_same() -> None:
    source = Held(a=torch.arange(12.0).view(3, 4), b=torch.ones(2), c=torch.ones(5))
    place, double, b = torch.zeros(3, 2), torch.zeros(3, 2), torch.zeros(2)
    seen = []
    read = fill(
        {"a": place, "b": b},
        source,
        cuts={"a": Cut(1, 1, 2, 4)},
        doubles={"a": [double]},
        elsewhere={"c"},
        progress=lambda done, total: seen.append((done, total)),
    )
    assert place.tolist() == double.tolist() == [[1, 2], [5, 6], [9, 10]]
    assert b.tolist() == [1, 1]
    assert source.asked == {"a": 6, "b": 2}
    assert read == 8 * 4
    assert seen[-1] == (read, read)


def test_what_is_nowhere_is_unknown_and_a_cut_of_another_size_is_named() -> None:
    source = Held(a=torch.zeros(3, 4), b=torch.zeros(2))
    with pytest.raises(ConfigError, match="'b' of shape \\[2\\] is unknown"):
        fill({"a": torch.zeros(3, 4)}, source)
    with pytest.raises(ConfigError, match="'a': wanted the shape \\[3, 8\\], got \\[3, 4\\]"):
        fill({"a": torch.zeros(3, 4)}, source, cuts={"a": Cut(1, 4, 4, 8)}, elsewhere={"b"})
    with pytest.raises(ConfigError, match="wanted the tensor 'c' of shape \\[3, 8\\]"):
        fill({"c": torch.zeros(3, 4)}, source, cuts={"c": Cut(1, 4, 4, 8)}, elsewhere={"b"})


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_part_of_an_8_bit_weight_is_that_part_of_the_dequantised_whole(data) -> None:
    """Only scales of blocks that the part reaches into are asked for."""
    shape = [data.draw(st.integers(1, 9)) for _ in "nk"]
    block = (data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4)))
    dim = data.draw(st.sampled_from([0, 1]))
    start = data.draw(st.integers(0, shape[dim] - 1))
    length = data.draw(st.integers(1, shape[dim] - start))
    weight = torch.randn(shape).to(torch.float8_e4m3fn)
    scales = torch.rand([-(-size // each) for size, each in zip(shape, block, strict=True)])
    source = Held(w=weight, w_scale_inv=scales)
    whole, part = torch.zeros(shape), torch.zeros(shape).narrow(dim, start, length).clone()
    fill({"w": whole}, Held(w=weight, w_scale_inv=scales), block=block)
    fill({"w": part}, source, cuts={"w": Cut(dim, start, length, shape[dim])}, block=block)
    assert torch.equal(part, whole.narrow(dim, start, length))
    reached = (start + length - 1) // block[dim] - start // block[dim] + 1
    assert source.asked == {
        "w": part.numel(),
        "w_scale_inv": reached * scales.shape[1 - dim],
    }


def test_scales_of_weights_that_others_hold_are_passed_over() -> None:
    weight = torch.zeros(4, 4).to(torch.float8_e4m3fn)
    source = Held(a=torch.ones(2), w=weight, w_scale_inv=torch.ones(1, 1))
    fill({"a": torch.zeros(2)}, source, elsewhere={"w"}, block=(4, 4))
    assert source.asked == {"a": 2}
