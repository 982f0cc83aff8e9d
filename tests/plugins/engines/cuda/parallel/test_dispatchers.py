"""Which dispatcher a mixture gets, what is refused, and what a group of one and a vendor's do."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import ModuleType
from typing import Any

import msgspec
import pytest

torch = pytest.importorskip("torch")

from tests.plugins.engines.cuda.models.paged import reference_ops  # noqa: E402
from tests.plugins.engines.cuda.parallel.played import PlayedBuffer  # noqa: E402
from tests.plugins.engines.cuda.parallel.ranks import run_ranks  # noqa: E402
from tests.plugins.engines.cuda.parallel.shared_experts import (  # noqa: E402
    Ask,
    ask,
    ask_one,
    config_of,
)
from tokenwire.core.cost.layout import Layout  # noqa: E402
from tokenwire.core.errors import ConfigError  # noqa: E402
from tokenwire.kernels.ep_dispatch import deep_ep_reason  # noqa: E402
from tokenwire.kernels.op import Signature  # noqa: E402
from tokenwire.plugins.engines.cuda.layers.dispatch import LocalDispatcher  # noqa: E402
from tokenwire.plugins.engines.cuda.layers.dispatchers import (  # noqa: E402
    BySpan,
    dispatcher_for,
    first_placement,
    ships_fp8,
    slots_of,
)
from tokenwire.plugins.engines.cuda.layers.moe import Moe  # noqa: E402
from tokenwire.plugins.engines.cuda.layers.site import Site  # noqa: E402
from tokenwire.plugins.engines.cuda.models.config import Mixture, Quantisation  # noqa: E402
from tokenwire.plugins.engines.cuda.parallel import deep_ep  # noqa: E402
from tokenwire.plugins.engines.cuda.parallel.exchanged import ExchangedDispatcher  # noqa: E402
from tokenwire.plugins.engines.cuda.parallel.gathered import GatheredDispatcher  # noqa: E402
from tokenwire.plugins.engines.cuda.parallel.group import Group  # noqa: E402
from tokenwire.plugins.engines.cuda.parallel.mesh import SOLE  # noqa: E402

pytestmark = pytest.mark.torch

MIXTURE = Mixture(experts=16, top_k=4, intermediate=128, layers=(0,))


def site(ranks: int, **options: Any) -> Site:
    """Of the last of so many parts, which are not there."""
    group = Group(ranks, ranks - 1)
    mesh = replace(SOLE, layout=Layout(1, ranks), rank=ranks - 1, data=group)
    fp8 = options.pop("fp8", False)
    config = config_of(MIXTURE, is_fp8=fp8, hidden=128)
    dtype = options.pop("dtype", torch.float32)
    return Site(config, reference_ops(), torch.device("cpu"), dtype, fp8, mesh=mesh, **options)


@pytest.mark.parametrize(
    ("ranks", "options", "wanted"),
    [
        (1, {}, LocalDispatcher),
        (1, {"dispatcher": "gathered"}, GatheredDispatcher),
        (1, {"dispatcher": "exchanged"}, ExchangedDispatcher),
        (4, {}, GatheredDispatcher),
        (8, {}, ExchangedDispatcher),
        (8, {"captured": 64}, BySpan),
        (8, {"dispatcher": "gathered"}, GatheredDispatcher),
        (2, {"dispatcher": "exchanged"}, ExchangedDispatcher),
        (2, {"is_steady": True}, ExchangedDispatcher),
        (2, {"is_steady": True, "captured": 64}, GatheredDispatcher),
    ],
)
def test_rows_travel_as_ranks_and_graphs_want_it(ranks, options, wanted) -> None:
    made = dispatcher_for(site(ranks, **options), MIXTURE)
    assert isinstance(made, wanted)
    assert made.yields == "contiguous"


def test_what_cannot_be_is_refused_in_words() -> None:
    with pytest.raises(ConfigError, match="waits for counts in every layer"):
        dispatcher_for(site(2, dispatcher="exchanged", captured=8), MIXTURE)
    with pytest.raises(ConfigError, match=r"16 experts and 1 redundant .* 2 parts .*1 more would"):
        dispatcher_for(site(2, redundant=1), MIXTURE)
    with pytest.raises(ConfigError, match="deep_ep does not apply: sgl-deep-ep is not installed"):
        dispatcher_for(site(2, dispatcher="deep_ep"), MIXTURE)
    gathered = dispatcher_for(site(4), MIXTURE)
    x, experts = torch.zeros(3, 128), torch.zeros(3, 4, dtype=torch.int32)
    with pytest.raises(ValueError, match="3 tokens, and ranks agreed on at most 2"):
        gathered.dispatch(x, experts, torch.zeros(3, 4), 2)


def test_a_rank_knows_of_experts_that_others_hold() -> None:
    here = site(4)
    moe = Moe(here, "mlp", MIXTURE)
    assert moe.held == (12, 13, 14, 15)
    names = {
        f"mlp.experts.{expert}.{part}.weight"
        for expert in range(12)
        for part in ("gate_proj", "up_proj", "down_proj")
    }
    assert here.elsewhere == names
    assert len(here.places) == 4 * 3 + 1
    doubled = site(4, redundant=4)
    assert slots_of(doubled, MIXTURE) == 5
    assert Moe(doubled, "mlp", MIXTURE).held == (15, 0, 1, 2, 3)
    assert first_placement(3, 5) == (0, 1, 2, 0, 1)
    twice = site(2, redundant=2)
    Moe(twice, "mlp", MIXTURE, placed=(*range(9), *range(9, 16), 3, 3))
    assert len(twice.doubles["mlp.experts.3.up_proj.weight"]) == 1


def test_fp8_experts_get_fp8_rows() -> None:
    half = {"dtype": torch.bfloat16}
    assert ships_fp8(site(2, fp8=True, **half), MIXTURE)
    assert not ships_fp8(site(2, fp8=True), MIXTURE)
    assert not ships_fp8(site(2, **half), MIXTURE)
    skipping = site(2, fp8=True, **half)
    for skipped, ships in (
        ("mlp", False),
        ("mlp.experts", False),
        ("mlp.experts.3.up_proj", False),
        ("mlp.gate", True),
        ("mlp.experts_of_another", True),
    ):
        config = msgspec.structs.replace(
            skipping.config, quantisation=Quantisation((128, 128), skipped=(skipped,))
        )
        assert ships_fp8(replace(skipping, config=config), MIXTURE, "mlp") == ships
    narrow = Mixture(experts=16, top_k=4, intermediate=96, layers=(0,))
    assert not ships_fp8(site(2, fp8=True, **half), narrow)


@pytest.mark.parametrize("dispatcher", ["gathered", "exchanged"])
def test_fp8_rows_are_those_that_the_experts_would_have_made(dispatcher) -> None:
    """Gathered, each rank rounds its summand to 16 bits."""
    one = Ask(MIXTURE, (5, 3), dispatcher, fp8=True)
    for (said,) in run_ranks("DEP_2", ask, [one]):
        apart = (said.y.float() - said.alone.float()).norm() / said.alone.float().norm()
        assert float(apart) <= (0 if dispatcher == "exchanged" else 5e-3)


@pytest.mark.parametrize("asking", [ask, ask_one])
@pytest.mark.parametrize("masked", [False, True])
def test_a_group_of_one_is_the_same(masked, asking) -> None:
    """As on one GPU: the same code, and nobody to talk to but itself."""
    small = Mixture(experts=6, top_k=2, intermediate=16, layers=(0,))
    asked = [
        Ask(small, (tokens,), dispatcher, masked=masked and dispatcher == "gathered", blank=blank)
        for dispatcher in ("gathered", "exchanged")
        for tokens, blank in ((7, ()), (1, ()), (0, ()), (5, (0, 4)))
    ]
    (said,) = run_ranks("DEP_1", asking, asked)
    for one in said:
        assert float((one.y - one.alone).norm()) <= 5e-7 * float(one.alone.norm())


# --- a vendor's ----------------------------------------------------------------------------------


def test_deep_ep_says_why_not(monkeypatch) -> None:
    hopper = Signature(device="cuda", capability=(9, 0), dtype=torch.bfloat16)
    assert "pip install sgl-deep-ep" in deep_ep_reason(hopper)
    monkeypatch.setattr(
        "tokenwire.kernels.support.find_spec", lambda name: name == "deep_ep" or None
    )
    assert deep_ep_reason(hopper) == ""
    assert "float32" in deep_ep_reason(replace(hopper, dtype=torch.float32))
    assert "needs compute capability 9.0" in deep_ep_reason(replace(hopper, capability=(8, 0)))
    assert "needs a CUDA device" in deep_ep_reason(Signature(dtype=torch.bfloat16))


def test_deep_ep_gets_memory_once_for_all_layers(monkeypatch) -> None:
    played = ModuleType("deep_ep")
    played.Buffer = PlayedBuffer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "deep_ep", played)
    monkeypatch.setattr(deep_ep, "deep_ep_reason", lambda signature: "")
    first = deep_ep.open_buffer(Group(4, 0, "processes"), 256)
    assert (first.group, first.bytes) == ("processes", (2 * 256 * 4, 3 * 256))
    one = site(4, dispatcher="deep_ep", dtype=torch.bfloat16)
    made = [dispatcher_for(one, MIXTURE) for _ in range(2)]
    assert all(isinstance(each, deep_ep.DeepEpDispatcher) for each in made)
    (held,) = one.once.values()
    assert all(each._buffer is held for each in made)
    with pytest.raises(ConfigError, match="there is one rank; choose auto"):
        dispatcher_for(site(1, dispatcher="deep_ep"), MIXTURE)
