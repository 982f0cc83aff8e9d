"""`objective: determinism`: the same request gets the same ids and the same bits of log
probabilities, whatever shares its steps, however its prompt is cut, and whatever is computed twice.

What it is held against is the request alone in an engine of its own.
"""

from __future__ import annotations

import random
from functools import cache

import pytest
from msgspec.structs import replace

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.plugins.engines.cuda.driving import engine, job, poison, waves  # noqa: E402
from tests.plugins.engines.cuda.load.checkpoints import tiny  # noqa: E402
from tests.plugins.engines.cuda.load.test_adapters import SHAPES, adapter  # noqa: E402
from tests.plugins.engines.cuda.models.paged import Paged  # noqa: E402
from tests.plugins.engines.cuda.test_matrix import LONG, MODELS, SAMPLED, SIZE  # noqa: E402
from tokenwire.core.errors import ConfigError  # noqa: E402
from tokenwire.core.tokens import Adapter, LogprobSettings, TokenJob  # noqa: E402
from tokenwire.kernels import panels  # noqa: E402
from tokenwire.kernels.op import Signature  # noqa: E402
from tokenwire.kernels.ops import Ops  # noqa: E402
from tokenwire.kernels.panels import plain_reason  # noqa: E402
from tokenwire.plugins.engines.cuda.load import load  # noqa: E402
from tokenwire.plugins.engines.cuda.models.families import parse_config  # noqa: E402
from tokenwire.plugins.engines.cuda.steadiness import want_steady  # noqa: E402

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(bool(plain_reason(Signature())), reason=plain_reason(Signature())),
]

SHOWN = LogprobSettings(top=4)
STEADY = {"objective": "determinism"}
WAYS = (
    (1, "float32"),
    (SIZE - 1, "float32"),
    (8, "float32"),
    (0, "float32"),
    (SIZE - 1, "bfloat16"),
    (0, "bfloat16"),
)
"""Tokens of a prompt in one step (0: as many as it holds), and the network's dtype."""
KEPT = tuple(MODELS)
NUMBERS = {"deepseek_v3": 24 + 8}
"""Of a token in one layer's cache; of the others, keys and values of 2 heads of 8."""


def mine(name: str = "mine") -> list[TokenJob]:
    return [
        job(f"{name}:greedy", LONG, logprobs=SHOWN),
        job(f"{name}:sampled", [*LONG[5:14], 7], sampling=SAMPLED, logprobs=SHOWN),
    ]


def company(seed: int, name: str = "other") -> list[TokenJob]:
    """Between none and seven others, of any length; some begin as mine do."""
    draw = random.Random(seed)
    found = []
    for at in range(draw.randrange(8)):
        prompt = [draw.randrange(3, 150) for _ in range(draw.randrange(1, 40))]
        if draw.random() < 0.3:
            prompt = LONG[: draw.randrange(1, len(LONG))] + prompt[:5]
        found.append(job(f"{name}{at}", prompt, max_tokens=draw.randrange(1, 14)))
    return found


def told(found, name: str = "mine"):
    """Ids and every number that came with them: the bits of a float are compared by ==."""
    return {
        kind: (
            tuple(found[f"{name}:{kind}", 0].ids),
            tuple(
                (each.id, each.logprob, each.rank, each.top)
                for each in found[f"{name}:{kind}", 0].logprobs
            ),
        )
        for kind in ("greedy", "sampled")
    }


@cache
def alone(model: str, dtype: str = "float32"):
    found = {}
    for each in mine():
        made = engine(MODELS[model](), dtype=dtype, prefix_cache=False, max_batch_size=1, **STEADY)
        poison(made)
        found |= waves(made, [each])
    return told(found)


def test_what_is_compared_is_not_nothing() -> None:
    for kind in ("greedy", "sampled"):
        ids, shown = alone("llama")[kind]
        assert len(ids) == len(shown) == 12
        assert all(len(top) >= 4 and logprob < 0 for _, logprob, _, top in shown)


@pytest.mark.parametrize("model", KEPT)
@pytest.mark.parametrize(("chunk", "dtype"), WAYS)
def test_bits_in_any_company(model: str, chunk: int, dtype: str) -> None:
    """Cold among others, then again over what all of them left in the cache."""
    made = engine(
        MODELS[model](),
        dtype=dtype,
        long_prefill_tokens=chunk,
        max_batch_tokens=48,
        graphs=chunk == 8,
        overlap=chunk == 0,
        **STEADY,
    )
    poison(made)
    draw = random.Random(chunk)
    rounds = []
    for at in range(3):
        together = [*mine(f"m{at}"), *company(10 * chunk + at, f"o{at}:")]
        draw.shuffle(together)
        rounds.append(together)
    found = waves(made, *rounds)
    for at in range(3):
        assert told(found, f"m{at}") == alone(model, dtype), at
    assert found["m1:greedy", 0].counts.cached > 0


@pytest.mark.parametrize("model", KEPT)
@pytest.mark.parametrize("drafts", [False, True])
def test_bits_of_the_preempted(model: str, drafts: bool) -> None:
    """What decode had written is computed again as part of a prompt; drafts are checked in rows."""
    made = engine(
        MODELS[model](),
        kv_gib=13 * SIZE * 3 * NUMBERS.get(model, 2 * 2 * 8) * 4 / 2**30,
        max_model_len=40,
        speculation={"tokens": 3, "longest": 3, "shortest": 1} if drafts else None,
        **STEADY,
    )
    poison(made)
    many = [replace(each, expected_tokens=0) for at in range(6) for each in mine(f"m{at}")]
    found = waves(made, many)
    assert made._worker._scheduler.status().preemptions > 0
    for at in range(6):
        assert told(found, f"m{at}") == alone(model)


@pytest.mark.parametrize("own", ["", "a"])
def test_bits_beside_other_adapters(own: str, tmp_path) -> None:
    tiny(tmp_path / "base", num_hidden_layers=2)
    folders = {
        name: str(adapter(tmp_path / name, SHAPES, r=rank, seed=rank))
        for name, rank in (("a", 3), ("b", 5))
    }
    kind = {"path": tmp_path / "base", "adapters": folders, **STEADY}

    def asked(name: str, which: str, prompt: list[int]) -> TokenJob:
        using = Adapter(which) if which else None
        return job(name, prompt, adapter=using, sampling=SAMPLED, logprobs=SHOWN)

    prompt = [5, 17, 60, 42, 42, 7, 11]
    one = asked("mine", own, prompt)
    others = [asked(f"{at}", which, [*prompt[:at], at]) for at, which in enumerate("abab")]
    plain = [asked(f"plain{at}", "", prompt[at:]) for at in range(3)]
    found = [
        waves(engine(**kind), [*company, one])["mine", 0]
        for company in ((), others, plain, [*others, *plain])
    ]
    for each in found[1:]:
        assert each.ids == found[0].ids
        assert each.logprobs == found[0].logprobs


@pytest.mark.parametrize("model", KEPT)
def test_bits_of_logits_however_a_sequence_is_cut(model: str) -> None:
    ops = Ops.choose(Signature(head_dim=8), objective="determinism", environ={})
    network = load(
        MODELS[model](), device="cpu", dtype=torch.float32, ops=ops, is_steady=True
    ).model
    network.settle()
    draw = random.Random(0)
    ids = [draw.randrange(3, 150) for _ in range(37)]
    whole = Paged(network, [ids]).step({0: 37})[0]
    for _ in range(6):
        others = [[draw.randrange(3, 150) for _ in range(37)] for _ in range(3)]
        driven = Paged(network, [ids, *others])
        found = []
        while driven.computed[0] < 37:
            counts = {
                at: min(draw.choice((1, 1, 2, 5, 9)), 37 - driven.computed[at])
                for at in range(4)
                if driven.computed[at] < 37 and (at == 0 or draw.random() < 0.6)
            }
            found.append(driven.step(counts)[0])
        assert torch.equal(torch.cat(found), whole)


def test_the_fast_kernels_do_not_keep_the_bits() -> None:
    """Else the mode would be for nothing, and the tests above would show nothing."""
    ops = Ops.choose(Signature(head_dim=8), {"attention_decode": "cpu"}, environ={})
    network = load(MODELS["llama"](), device="cpu", dtype=torch.float32, ops=ops).model
    ids = LONG + LONG
    whole = Paged(network, [ids]).step({0: len(ids)})[0]
    driven = Paged(network, [ids])
    alone = torch.cat([driven.step({0: 1})[0] for _ in ids])
    assert not torch.equal(alone, whole)


def test_what_a_kernel_cannot_keep_is_refused_in_words(monkeypatch) -> None:
    with pytest.raises(ConfigError, match=r"determinism: matmul by torch .*named by configuration"):
        engine(MODELS["llama"](), kernels={"matmul": "torch"}, **STEADY)
    with pytest.raises(ConfigError, match=r"determinism: .* may change a request's bits"):
        engine(MODELS["llama"](), dtype="float16", **STEADY)
    with pytest.raises(ConfigError, match=r"determinism: mla_decode by cpu .*named by config"):
        engine(MODELS["deepseek_v3"](), kernels={"mla_decode": "cpu"}, **STEADY)
    with pytest.raises(ConfigError, match="wanted task: generate, got task: embed"):
        engine(MODELS["llama"](), task="embed", **STEADY)
    config = parse_config(
        {
            "architectures": ["LlamaForCausalLM"],
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 1,
            "num_attention_heads": 4,
            "vocab_size": 96,
            "max_position_embeddings": 64,
        }
    )
    monkeypatch.setattr(panels, "compiler_reason", lambda source: "no C++ compiler is here")
    ops = Ops.choose(Signature(head_dim=8), objective="determinism", environ={})
    with pytest.raises(ConfigError, match=r"matmul by .*cpu_native: no C.. compiler is here"):
        want_steady(config, ops, "auto", keeps_fp8=False)
    with pytest.raises(ConfigError, match="DeepEP's sums hang on what else is sent"):
        want_steady(config, ops, "deep_ep", keeps_fp8=False)
