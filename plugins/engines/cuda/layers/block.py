"""One layer of a decoder: attention, then an MLP or experts, each beside the residual."""

from __future__ import annotations

from typing import final

from torch import Tensor

from tokenwire.plugins.engines.cuda.batch import Batch, KvCache
from tokenwire.plugins.engines.cuda.layers.attention import Attention
from tokenwire.plugins.engines.cuda.layers.mla import LatentAttention
from tokenwire.plugins.engines.cuda.layers.mlp import Mlp
from tokenwire.plugins.engines.cuda.layers.moe import Moe
from tokenwire.plugins.engines.cuda.layers.norm import Norm
from tokenwire.plugins.engines.cuda.layers.site import Site

__all__ = ("Block",)


@final
class Block:
    """What a block adds is left for the next norm to add, which does both in one pass."""

    def __init__(self, site: Site, name: str, layer: int) -> None:
        kind = Attention if site.config.mla is None else LatentAttention
        self.attention: Attention | LatentAttention = kind(site, f"{name}.self_attn", layer)
        mixture = site.config.mixture
        if mixture is not None and layer in mixture.layers:
            self.mlp: Mlp | Moe = Moe(site, f"{name}.mlp", mixture)
        else:
            self.mlp = Mlp(site, f"{name}.mlp")
        self.before_attention = Norm(site, f"{name}.input_layernorm")
        self.after_attention: Norm | None = None
        self.after_mlp: Norm | None = None
        before_mlp = "post_attention_layernorm"
        if site.config.post_norms:
            self.after_attention = Norm(site, f"{name}.post_attention_layernorm")
            self.after_mlp = Norm(site, f"{name}.post_feedforward_layernorm")
            before_mlp = "pre_feedforward_layernorm"
        self.before_mlp = Norm(site, f"{name}.{before_mlp}")

    def __call__(
        self,
        x: Tensor,
        residual: Tensor | None,
        batch: Batch,
        cache: KvCache,
        *,
        cos_sin: Tensor,
        gate: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """(x, residual), whose sum is the block's input -> the same of its output.

        The memory of `residual` (of x, where it is None) is used again.
        """
        if residual is None:
            x, residual = self.before_attention(x), x
        else:
            x, residual = self.before_attention.join(x, residual)
        x = self.attention(x, batch, cache, cos_sin, gate)
        if self.after_attention is not None:
            x = self.after_attention(x)
        x, residual = self.before_mlp.join(x, residual)
        x = self.mlp(x, gate, batch)
        return (x if self.after_mlp is None else self.after_mlp(x)), residual
