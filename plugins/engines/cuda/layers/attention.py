"""Self-attention over the paged KV of one layer. Knows neither what comes before nor after it."""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor

from tokenwire.plugins.engines.cuda.batch import Batch, KvCache
from tokenwire.plugins.engines.cuda.layers.linear import Linear
from tokenwire.plugins.engines.cuda.layers.site import Site

__all__ = ("Attention", "held_heads")


@final
class Attention:
    """Called with normalised x [T, H]; writes the tokens' KV and gives [T, H]."""

    def __init__(self, site: Site, name: str, layer: int) -> None:
        config = site.config
        self.config, self.ops = config, site.ops
        self.window = config.windows[layer]
        self.group = config.group_of_layer[layer]
        heads, kv_heads, dim = config.heads, config.kv_heads, config.head_dim
        self.heads, self.kv_heads, sharing = held_heads(site)
        sizes = {"q_proj": heads * dim, "k_proj": kv_heads * dim, "v_proj": kv_heads * dim}
        self.qkv = Linear(
            site,
            [(f"{name}.{part}", size) for part, size in sizes.items()],
            config.hidden,
            bias=config.qkv_bias,
            cut="outputs",
            shared=(1, sharing, sharing),
        )
        self.output = Linear(
            site,
            [(f"{name}.o_proj", config.hidden)],
            heads * dim,
            bias=config.output_bias,
            cut="inputs",
        )
        self.sinks: Tensor | None = None
        if config.sinks:
            self.sinks = site.empty(self.heads, dtype=torch.float32)
            site.put(f"{name}.sinks", self.sinks, site.slice_of("num_attention_heads", heads))
        self.norms: tuple[Tensor, Tensor] | None = None
        if config.qk_norm:
            self.norms = (
                site.weight(f"{name}.q_norm.weight", dim),
                site.weight(f"{name}.k_norm.weight", dim),
            )

    @property
    def linears(self) -> tuple[Linear, ...]:
        """Those that an adapter may add to."""
        return self.qkv, self.output

    def settle(self) -> None:
        for linear in self.linears:
            linear.settle()

    def __call__(
        self, x: Tensor, batch: Batch, cache: KvCache, cos_sin: Tensor, gate: Tensor | None
    ) -> Tensor:
        """`cos_sin` [positions, R] float32, as `ops.rope` takes it; `gate` [T, slots] of `gate_of`;
        None: no token has an adapter."""
        config, ops = self.config, self.ops
        heads, kv_heads = self.heads, self.kv_heads
        qkv = self.qkv(x, gate).view(-1, heads + 2 * kv_heads, config.head_dim)
        q, k, v = qkv.split((heads, kv_heads, kv_heads), dim=1)
        if self.norms is not None:
            q = ops.rms_norm(q, self.norms[0], config.rms_eps, config.norm_offset)
            k = ops.rms_norm(k, self.norms[1], config.rms_eps, config.norm_offset)
        q, k = ops.rope(q, k, batch.positions, cos_sin)
        slots = batch.slots[self.group]
        ops.kv_write(k, v, cache.k, cache.v, slots, cache.k_scale, cache.v_scale)
        return self.output(self._attend(q, batch, cache).flatten(1), gate)

    def _attend(self, q: Tensor, batch: Batch, cache: KvCache) -> Tensor:
        """[T, heads, dim] of queries -> the same of values."""
        decode, prefill = batch.decode[self.group], batch.prefill[self.group]
        options = {
            "sinks": self.sinks,
            "window": self.window,
            "softcap": self.config.attention_softcap,
            "k_scale": cache.k_scale,
            "v_scale": cache.v_scale,
        }
        scale, split = self.config.attention_scale, batch.decode_tokens
        found: list[Tensor] = []
        if decode is not None:
            part = q if prefill is None else q[:split]
            found.append(
                self.ops.attention_decode(part, cache.k, cache.v, decode, scale, **options)
            )
        if prefill is not None:
            part = q if decode is None else q[split:]
            found.append(
                self.ops.attention_prefill(part, cache.k, cache.v, prefill, scale, **options)
            )
        return found[0] if len(found) == 1 else torch.cat(found)


def held_heads(site: Site) -> tuple[int, int, int]:
    """Heads of queries and of keys that this rank has, and how many slices have the same keys: more
    than one where there are fewer heads of keys than slices.

    Raises ConfigError where heads cannot be cut so.
    """
    config, count = site.config, site.mesh.tensor.size
    sharing = max(count // config.kv_heads, 1)
    heads = site.slice_of("num_attention_heads", config.heads)
    kv_heads = site.slice_of("num_key_value_heads", config.kv_heads, shared=sharing)
    if heads is None or kv_heads is None:
        return config.heads, config.kv_heads, 1
    return heads.length, kv_heads.length, sharing
