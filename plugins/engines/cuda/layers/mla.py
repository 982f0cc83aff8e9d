"""Self-attention over the paged latents of one layer (MLA). Knows neither what comes before nor
after it.

DeepSeek-AI, "DeepSeek-V2" (arXiv:2405.04434, 2.1): of a token the cache holds C numbers that every
head's key and value are made from, and R of a rotated key that all heads share.
"""

from __future__ import annotations

from dataclasses import replace
from typing import final

import torch
from torch import Tensor

from tokenwire.plugins.engines.cuda.batch import Batch, KvCache
from tokenwire.plugins.engines.cuda.layers.linear import Linear
from tokenwire.plugins.engines.cuda.layers.shares import OPS_BLOCK
from tokenwire.plugins.engines.cuda.layers.site import Cut, Site
from tokenwire.plugins.engines.cuda.models.config import Mla

__all__ = ("LatentAttention",)

EPS = 1e-6
"""Of the norms of latents, whatever the model's other norms have."""


@final
class LatentAttention:
    """Called with normalised x [T, H]; writes the tokens' latents and gives [T, H].

    Heads are cut between the slices of a part; what is kept of a token is whole in each.
    """

    def __init__(self, site: Site, name: str, layer: int) -> None:
        config = site.config
        assert config.mla is not None
        self.config, self.ops, self.mla = config, site.ops, config.mla
        self.group = config.group_of_layer[layer]
        self.cut = site.slice_of("num_attention_heads", config.heads)
        self.heads = config.heads if self.cut is None else self.cut.length
        self._queries(site, name, config.mla)
        self.kv_down = Linear(
            site,
            [(f"{name}.kv_a_proj_with_mqa", config.mla.kv_rank + config.mla.rope_dim)],
            config.hidden,
            bias=config.qkv_bias,
            order=_turned(site, 1, config.mla.kv_rank),
        )
        self.kv_norm = site.weight(f"{name}.kv_a_layernorm.weight", config.mla.kv_rank)
        self.w_uk, self.w_uv = self._ups(site, f"{name}.kv_b_proj", config.mla)
        self.w_fold = self.w_uk.mT
        """[heads, C, Dn]: w_uk, as queries are multiplied by it."""
        self.is_steady = site.is_steady
        self.output = Linear(
            site,
            [(f"{name}.o_proj", config.hidden)],
            config.heads * config.mla.value_dim,
            bias=config.output_bias,
            cut="inputs",
        )

    def _queries(self, site: Site, name: str, mla: Mla) -> None:
        config = self.config
        self.q_down: Linear | None = None
        inputs, last = config.hidden, f"{name}.q_proj"
        if mla.q_rank:
            first = [(f"{name}.q_a_proj", mla.q_rank)]
            self.q_down = Linear(site, first, config.hidden, bias=config.qkv_bias)
            self.q_norm = site.weight(f"{name}.q_a_layernorm.weight", mla.q_rank)
            inputs, last = mla.q_rank, f"{name}.q_b_proj"
        width = mla.nope_dim + mla.rope_dim
        if mla.interleaved and not _in_blocks(config.heads, mla):
            site = replace(site, keeps_fp8=False)
        self.q_up = Linear(
            site,
            [(last, config.heads * width)],
            inputs,
            bias=False,
            cut="outputs",
            order=_turned(site, self.heads, mla.nope_dim),
        )

    def _ups(self, site: Site, name: str, mla: Mla) -> tuple[Tensor, Tensor]:
        """[heads, Dn, C] and [heads, Dv, C], which make keys and values of latents; 8-bit weights
        are dequantised, since products by single heads take none."""
        heads, both = self.heads, mla.nope_dim + mla.value_dim
        cut = None
        if self.cut is not None:
            cut = Cut(0, self.cut.start * both, heads * both, self.cut.of * both)
        whole = site.empty(heads * both, mla.kv_rank)
        site.put(f"{name}.weight", whole, cut)
        rows = torch.arange(heads * both).view(heads, both)
        parts = rows[:, : mla.nope_dim], rows[:, mla.nope_dim :]
        site.orders[f"{name}.weight"] = torch.cat([part.flatten() for part in parts])
        keys, values = whole.split((heads * mla.nope_dim, heads * mla.value_dim))
        return (
            keys.view(heads, mla.nope_dim, mla.kv_rank),
            values.view(heads, mla.value_dim, mla.kv_rank),
        )

    @property
    def linears(self) -> tuple[Linear, ...]:
        """Those that an adapter may add to."""
        first = () if self.q_down is None else (self.q_down,)
        return (*first, self.q_up, self.kv_down, self.output)

    def settle(self) -> None:
        for linear in self.linears:
            linear.settle()
        if self.is_steady:
            # Why in its own memory: prompts are absorbed too then, and nothing reads w_uk.
            turned = self.w_uk.mT.contiguous()
            self.w_fold = self.w_uk.view(turned.shape)
            self.w_fold.copy_(turned)

    def __call__(
        self, x: Tensor, batch: Batch, cache: KvCache, cos_sin: Tensor, gate: Tensor | None
    ) -> Tensor:
        """As Attention's."""
        mla, ops = self.mla, self.ops
        inner = x
        if self.q_down is not None:
            inner = ops.rms_norm(self.q_down(x, gate), self.q_norm, EPS)
        q = self.q_up(inner, gate).view(-1, self.heads, mla.nope_dim + mla.rope_dim)
        entry = self.kv_down(x, gate)
        latent = entry[:, : mla.kv_rank]
        latent.copy_(ops.rms_norm(latent, self.kv_norm, EPS))
        ops.rope(q[..., mla.nope_dim :], entry[:, None, mla.kv_rank :], batch.positions, cos_sin)
        ops.mla_write(entry, cache.k, batch.slots[self.group], cache.k_scale)
        return self.output(self._attend(q, batch, cache).flatten(1), gate)

    def _attend(self, q: Tensor, batch: Batch, cache: KvCache) -> Tensor:
        """[T, heads, Dn + R] of queries -> [T, heads, Dv]."""
        decode, prefill = batch.decode[self.group], batch.prefill[self.group]
        scale, split = self.config.attention_scale, batch.decode_tokens
        found: list[Tensor] = []
        if decode is not None:
            part = self._absorbed(q if prefill is None else q[:split])
            mixed = self.ops.mla_decode(
                part,
                cache.k,
                decode,
                scale,
                value_dim=self.mla.kv_rank,
                k_scale=cache.k_scale,
            )
            found.append(self._by_head(mixed, self.w_uv))
        if prefill is not None:
            part = q if decode is None else q[split:]
            found.append(
                self.ops.mla_prefill(
                    part, cache.k, self.w_uk, self.w_uv, prefill, scale, k_scale=cache.k_scale
                )
            )
        return found[0] if len(found) == 1 else torch.cat(found)

    def _absorbed(self, q: Tensor) -> Tensor:
        """[T, heads, Dn + R] -> [T, heads, C + R]: against the cache's entries themselves."""
        plain, turned = q.split((self.mla.nope_dim, self.mla.rope_dim), dim=-1)
        return torch.cat((self._by_head(plain, self.w_fold), turned), dim=-1)

    def _by_head(self, x: Tensor, w: Tensor) -> Tensor:
        """x [T, heads, K] by w [heads, N, K], each head by its own: [T, heads, N]."""
        rows = x.transpose(0, 1)
        if not self.is_steady:
            return torch.bmm(rows, w.mT).transpose(0, 1)
        # Why so: torch takes another product for another number of tokens.
        offsets = torch.arange(len(w) + 1, dtype=torch.int32, device=x.device) * len(x)
        y: Tensor = self.ops.grouped_matmul(rows.flatten(0, 1), w.contiguous(), offsets)
        return y.unflatten(0, rows.shape[:2]).transpose(0, 1)


def _turned(site: Site, heads: int, plain: int) -> Tensor | None:
    """An order of the outputs of `heads`: each has `plain` of them, then those that are rotated.
    Of these, where they are pairs side by side, the firsts of all pairs come before the seconds, as
    the op rope wants them."""
    mla = site.config.mla
    if mla is None or not mla.interleaved:
        return None
    rows = torch.arange(heads * (plain + mla.rope_dim)).view(heads, -1)
    pairs = rows[:, plain:].unflatten(1, (-1, 2)).mT.flatten(1)
    return torch.cat((rows[:, :plain], pairs), dim=1).flatten()


def _in_blocks(heads: int, mla: Mla) -> bool:
    """Whether rows that change places share the scale of an fp8 block."""
    width, block = mla.nope_dim + mla.rope_dim, OPS_BLOCK[0]
    firsts = (head * width + mla.nope_dim for head in range(heads))
    return all(first // block == (first + mla.rope_dim - 1) // block for first in firsts)
