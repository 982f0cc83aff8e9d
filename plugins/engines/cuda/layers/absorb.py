"""When a prompt's queries go against latents themselves (MLA), as those of a decode do. Knows no
weight.

Reads the host's integers alone: nothing waits for the device.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional as F

from tokenwire.kernels.attention.batch import AttentionBatch
from tokenwire.plugins.engines.cuda.batch import Batch
from tokenwire.plugins.engines.cuda.models.config import Mla

__all__ = ("MOST", "absorbed", "is_cheaper")

MOST = 256
"""Queries of a step that are absorbed: each keeps sums of its own for every part of a long
sequence, and memory was measured with a prompt that is not absorbed."""


def is_cheaper(mla: Mla, queries: int, keys: int, sequences: int) -> bool:
    """Whether absorbed attention takes fewer operations than unabsorbed, of so many `queries` and
    `keys` in all. Per head, with lengths as equal as can be, S = queries / sequences and
    L = keys / sequences, a batch has queries * (L - S / 2) pairs of a query and a key that it sees:

        unabsorbed: 2 (Dn + R + Dv) a pair, and 2 C (Dn + Dv) a key, which is expanded
        absorbed:   2 (2 C + R) a pair, and 2 C (Dn + Dv) a query, which is folded and unfolded

    So it is where few queries see much: with DeepSeek-V3's sizes fewer than 171 of a long prompt.
    """
    both, latent = mla.nope_dim + mla.value_dim, mla.kv_rank
    pairs = queries * (keys - queries / 2) / max(sequences, 1)
    return latent * both * (keys - queries) > (2 * latent - both) * pairs


def absorbed(batch: Batch, mla: Mla, *, always: bool = False) -> Batch:
    """The same tokens, each a decode of its own where the prefills have few (MOST), and that is
    cheaper. `always`: whatever it costs, so that a token is computed in one way, whoever shares its
    step and however its prompt is cut."""
    prefill, split = batch.prefill[0], batch.decode_tokens
    queries = len(batch.ids) - split
    if prefill is None or queries <= 0:
        return batch
    sequences = prefill.kv_lens.shape[0]
    keys = prefill.sum_kv or sequences * prefill.max_kv
    pays = queries <= MOST and is_cheaper(mla, queries, keys, sequences)
    if not (always or pays):
        return batch
    groups = range(len(batch.prefill))
    return replace(
        batch,
        decode=tuple(_decode(batch, group, queries) for group in groups),
        prefill=(None,) * len(groups),
        decode_tokens=split + queries,
    )


def _decode(batch: Batch, group: int, queries: int) -> AttentionBatch:
    """A row for each token: it sees what is up to its own position, and its sequence's blocks."""
    decode, prefill = batch.decode[group], batch.prefill[group]
    assert prefill is not None
    device = batch.ids.device
    sequences = torch.repeat_interleave(
        torch.arange(prefill.kv_lens.shape[0], device=device),
        prefill.cu_q.diff(),
        output_size=queries,
    )
    lens = (batch.positions[batch.decode_tokens :] + 1).to(torch.int32)
    table, longest, total = prefill.block_table[sequences], prefill.max_kv, queries * prefill.max_kv
    if decode is not None:
        width = max(decode.block_table.shape[1], table.shape[1])
        table = torch.cat((_wide(decode.block_table, width), _wide(table, width)))
        lens = torch.cat((decode.kv_lens, lens))
        longest = max(decode.max_kv, longest)
        total += decode.sum_kv or decode.kv_lens.shape[0] * decode.max_kv
    return AttentionBatch(
        cu_q=torch.arange(len(lens) + 1, dtype=torch.int32, device=device),
        kv_lens=lens,
        block_table=table,
        block_size=prefill.block_size,
        max_q=1,
        max_kv=longest,
        sum_kv=total,
    )


def _wide(table: Tensor, width: int) -> Tensor:
    return F.pad(table, (0, width - table.shape[1]))
