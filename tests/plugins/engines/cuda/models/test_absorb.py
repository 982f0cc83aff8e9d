"""When queries of prompts go against latents themselves: where it is cheaper, and for few."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from tokenwire.kernels.attention.batch import AttentionBatch  # noqa: E402
from tokenwire.plugins.engines.cuda.batch import Batch  # noqa: E402
from tokenwire.plugins.engines.cuda.layers import absorb  # noqa: E402
from tokenwire.plugins.engines.cuda.models.config import Mla  # noqa: E402

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("latent", [512, 64])
def test_what_is_cheaper_is_what_takes_fewer_operations(latent) -> None:
    """Counted pair by pair, of sequences of one length."""
    mla = Mla(q_rank=0, kv_rank=latent, nope_dim=128, rope_dim=64, value_dim=128)
    for queries, keys in ((1, 1), (4, 900), (100, 3000), (170, 99999), (180, 99999), (500, 501)):
        pairs = sum(keys - queries + 1 + at - 0.5 for at in range(queries))
        plain = (128 + 64 + 128) * pairs + latent * 256 * keys
        folded = (2 * latent + 64) * pairs + latent * 256 * queries
        for sequences in (1, 3):
            found = absorb.is_cheaper(mla, sequences * queries, sequences * keys, sequences)
            assert found == (folded < plain)


def test_the_sizes_of_v3_absorb_fewer_than_171_queries_of_a_long_prompt() -> None:
    mla = Mla(q_rank=1536, kv_rank=512, nope_dim=128, rope_dim=64, value_dim=128)
    assert absorb.is_cheaper(mla, 170, 1 << 30, 1)
    assert not absorb.is_cheaper(mla, 171, 1 << 30, 1)


@pytest.mark.parametrize(("queries", "goes"), [(absorb.MOST, True), (absorb.MOST + 1, False)])
def test_a_step_absorbs_no_more_than_it_has_memory_for(queries: int, goes: bool) -> None:
    lens = torch.tensor([9000], dtype=torch.int32)
    prefill = AttentionBatch(
        cu_q=torch.tensor([0, queries], dtype=torch.int32),
        kv_lens=lens,
        block_table=torch.zeros(1, 9, dtype=torch.int32),
        block_size=1024,
        max_q=queries,
        max_kv=9000,
    )
    ids = torch.arange(queries)
    batch = Batch(ids, ids + 9000 - queries, (ids,), (None,), (prefill,), 0, ids)
    mla = Mla(q_rank=0, kv_rank=512, nope_dim=200, rope_dim=64, value_dim=200)
    found = absorb.absorbed(batch, mla)
    assert absorb.absorbed(batch, mla, always=True).prefill == (None,)
    if goes:
        assert found.prefill == (None,)
        assert found.decode[0] is not None
        assert found.decode[0].kv_lens.tolist() == list(range(9001 - queries, 9001))
    else:
        assert found is batch
