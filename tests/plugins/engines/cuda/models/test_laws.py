"""What holds for every network: it reads nothing back, alters no weight, serves what it is told."""

from __future__ import annotations

from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tests.plugins.engines.cuda.models.paged import Paged, reference_ops  # noqa: E402
from tokenwire.kernels.attention.batch import AttentionBatch  # noqa: E402
from tokenwire.plugins.engines.cuda.batch import Batch  # noqa: E402
from tokenwire.plugins.engines.cuda.layers.rope import cos_sin, frequencies  # noqa: E402
from tokenwire.plugins.engines.cuda.memory import layer_cache  # noqa: E402
from tokenwire.plugins.engines.cuda.models.causal import CausalModel  # noqa: E402
from tokenwire.plugins.engines.cuda.models.config import KvGroup, Rope  # noqa: E402
from tokenwire.plugins.engines.cuda.models.families import FAMILIES, parse_config  # noqa: E402

pytestmark = pytest.mark.torch

FIELDS = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "vocab_size": 40,
    "max_position_embeddings": 64,
    "sliding_window": 8,
    "sliding_window_pattern": 2,
    "final_logit_softcapping": 5.0,
    "num_experts": 6,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
    "mlp_only_layers": [1],
    "n_routed_experts": 6,
    "first_k_dense_replace": 1,
    "q_lora_rank": 12,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4,
    "v_head_dim": 6,
}


def config_of(family):
    return parse_config({**FIELDS, "architectures": [family.architectures[0]]})


def attention(sequences: int, queries: int, longest: int) -> AttentionBatch:
    def ints(*shape: int):
        return torch.empty(shape, dtype=torch.int32, device="meta")

    table = ints(sequences, -(-longest // 4))
    return AttentionBatch(
        ints(sequences + 1), ints(sequences), table, 4, queries, longest, sequences * longest
    )


@pytest.mark.parametrize("longest", [5, 900])
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_forward_needs_no_value_of_any_tensor(family, longest) -> None:
    """On the device meta, where there are none: a read of one, or a shape that hangs on one, fails.

    So a step can be captured in a CUDA graph and never waits for the device. `longest`: of the
    sequences, as the host knows it; latents are absorbed where it is large.
    """
    config = config_of(family)

    def attend(q, *_, **__):
        return torch.empty_like(q)

    ops = replace(
        reference_ops(),
        kv_write=lambda *_: None,
        attention_decode=attend,
        attention_prefill=attend,
        mla_write=lambda *_: None,
        mla_decode=lambda q, *_, value_dim, **__: q.new_empty(*q.shape[:2], value_dim),
        mla_prefill=lambda q, _, w_uk, w_uv, *__, **___: q.new_empty(*q.shape[:2], w_uv.shape[1]),
    )
    model = CausalModel(config, ops, device="meta")
    model.reserve_adapters(2, 4)
    tokens = 9
    ints = torch.empty(tokens, dtype=torch.int64, device="meta")
    groups = len(config.groups)
    batch = Batch(
        ids=ints,
        positions=ints,
        slots=(ints,) * groups,
        decode=(attention(4, 1, longest),) * groups,
        prefill=(attention(1, 5, longest),) * groups,
        decode_tokens=4,
        logit_rows=ints[:3],
        adapters=ints.int(),
    )
    hidden = model.forward(batch, [layer_cache(model, 8, 4)] * config.layers)
    assert hidden.shape == (tokens, config.hidden)
    scores = model.logits(hidden[batch.logit_rows])
    assert (scores.shape, scores.dtype) == ((3, config.vocab_size), torch.float32)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_forward_alters_no_weight(family) -> None:
    torch.manual_seed(0)
    model = CausalModel(config_of(family), reference_ops())
    for place in model.places.values():
        place.normal_(0, 0.2)
    before = {name: place.clone() for name, place in model.places.items()}
    tables = [table.clone() for table in model.tables]
    first = Paged(model, [[1, 2, 3, 4, 5]]).step({0: 5})[0]
    assert torch.equal(Paged(model, [[1, 2, 3, 4, 5]]).step({0: 5})[0], first)
    assert all(torch.equal(place, before[name]) for name, place in model.places.items())
    assert all(torch.equal(*pair) for pair in zip(tables, model.tables, strict=True))


def test_layers_that_look_equally_far_share_a_group() -> None:
    config = config_of(FAMILIES[-1])
    assert config.windows == (8, 0, 8)
    assert config.groups == (KvGroup(0, (1,)), KvGroup(8, (0, 2)))
    assert config.group_of_layer == (1, 0, 1)
    assert config_of(FAMILIES[1]).groups == (KvGroup(8, (0, 1, 2)),)


@pytest.mark.parametrize("positions", [32, 64, 200])
def test_a_dynamic_base_is_transformers_at_the_served_length(positions) -> None:
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    config = transformers.LlamaConfig(
        hidden_size=32,
        num_attention_heads=4,
        max_position_embeddings=64,
        rope_parameters={"rope_type": "dynamic", "factor": 3.0, "rope_theta": 1e4},
    )
    wanted, _ = ROPE_INIT_FUNCTIONS["dynamic"](config, None, seq_len=positions)
    found = frequencies(Rope(8, 1e4, "dynamic", 3.0, 64), positions)
    torch.testing.assert_close(found, wanted, atol=0, rtol=1e-6)


def test_a_table_is_as_long_as_what_is_served() -> None:
    table = cos_sin(Rope(8), 100, torch.device("cpu"))
    assert table.shape == (100, 8)
    assert table[0].tolist() == [1.0] * 4 + [0.0] * 4
    angle = 99 * 10_000.0 ** (-2 / 8)
    assert table[99, 1] == pytest.approx(torch.tensor(angle).cos().item(), abs=1e-5)
    model = CausalModel(config_of(FAMILIES[0]), reference_ops(), positions=16)
    assert [each.shape[0] for each in model.tables] == [16]
