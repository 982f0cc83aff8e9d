"""The decoder that every family's configuration describes: ids in, hidden states and logits out.

Weights and nothing else: no cache, no position, no request. Knows no file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack, final

import torch
from torch import Tensor
from torch.nn import functional as F

from tokenwire.plugins.engines.cuda.batch import Batch, KvCache
from tokenwire.plugins.engines.cuda.layers.absorb import absorbed
from tokenwire.plugins.engines.cuda.layers.block import Block
from tokenwire.plugins.engines.cuda.layers.head import Head
from tokenwire.plugins.engines.cuda.layers.linear import Linear
from tokenwire.plugins.engines.cuda.layers.lora import gate_of
from tokenwire.plugins.engines.cuda.layers.norm import Norm
from tokenwire.plugins.engines.cuda.layers.rope import cos_sin
from tokenwire.plugins.engines.cuda.layers.site import Lying, Site
from tokenwire.plugins.engines.cuda.models.config import ModelConfig

if TYPE_CHECKING:
    from tokenwire.kernels.ops import Ops

__all__ = ("CausalModel",)


@final
class CausalModel:
    """Memory for the weights, not filled: `load.load` does that, by `places`."""

    def __init__(
        self,
        config: ModelConfig,
        ops: Ops,
        *,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
        positions: int | None = None,
        with_head: bool = True,
        keeps_fp8: bool = False,
        **lies: Unpack[Lying],
    ) -> None:
        """`positions`: how many a sequence may have; None: the model's context length.
        `with_head` False: an embedder's, which has no logits. `keeps_fp8`: fp8 weights stay so.
        `lies`: as a Site's."""
        self.config = config
        self.ops = ops
        self.device = torch.device(device)
        self.dtype = dtype
        self.adapter_slots = 0
        # Why so: the scale is rounded to the weights' dtype, as it was in training.
        self.embed_scale = float(torch.tensor(config.embed_scale, dtype=dtype))
        site = self.site = Site(config, ops, self.device, dtype, keeps_fp8, **lies)
        self.embedding = site.weight("model.embed_tokens.weight", config.vocab_size, config.hidden)
        self.blocks = tuple(
            Block(site, f"model.layers.{layer}", layer) for layer in range(config.layers)
        )
        self.norm = Norm(site, "model.norm")
        self.head: Head | None = None
        if with_head:
            self.head = Head(site, "lm_head", self.embedding if config.tie else None)
        served = positions or config.context_length
        self.tables = tuple(cos_sin(rope, served, self.device) for rope in config.ropes)
        self.places = site.places
        """A checkpoint tensor's name -> where its values go."""

    @property
    def weight_bytes(self) -> int:
        further = [place for places in self.site.doubles.values() for place in places]
        return sum(place.nbytes for place in (*self.places.values(), *further))

    def settle(self) -> None:
        """To be called once, when all weights are filled: lays those that are multiplied by out as
        this machine does that fastest. `places` no longer show a checkpoint's tensors then."""
        for block in self.blocks:
            block.attention.settle()
            block.mlp.settle()
        if self.head is not None:
            self.head.settle()

    def linears(self) -> dict[str, tuple[Linear, int]]:
        """Each linear module of the checkpoint that an adapter may add to -> the layer it is in,
        and its part there. Experts are not among them."""
        found: dict[str, tuple[Linear, int]] = {}
        for block in self.blocks:
            for linear in (*block.attention.linears, *block.mlp.linears):
                for part, (name, _) in enumerate(linear.parts):
                    found[name] = linear, part
        return found

    def reserve_adapters(self, slots: int, rank: int) -> None:
        """Memory for LoRA adapters in slots 1 to `slots`, of ranks up to `rank`; all are zero.

        To be called once, before any CUDA graph is captured.
        """
        self.adapter_slots = slots
        like = torch.empty(0, device=self.device, dtype=self.dtype)
        for linear, part in self.linears().values():
            if part == 0:
                linear.reserve(slots, rank, like)

    def forward(self, batch: Batch, caches: Sequence[KvCache]) -> Tensor:
        """[T, H], after the final norm. Writes the tokens' KV into `caches`, one a layer.

        Launches work and reads nothing back: it can be captured in a CUDA graph.
        """
        with torch.inference_mode():
            gate = None
            if batch.adapters is not None and self.adapter_slots:
                gate = gate_of(batch.adapters, self.adapter_slots)
            x = F.embedding(batch.ids, self.embedding)
            if self.embed_scale != 1.0:
                x *= self.embed_scale
            residual: Tensor | None = None
            if self.config.mla is not None:
                batch = absorbed(batch, self.config.mla, always=self.site.is_steady)
            ropes = self.config.rope_of_layer
            for layer, block in enumerate(self.blocks):
                table = self.tables[ropes[layer]]
                x, residual = block(x, residual, batch, caches[layer], cos_sin=table, gate=gate)
            return self.norm(x) if residual is None else self.norm.join(x, residual)[0]

    def logits(self, hidden: Tensor) -> Tensor:
        """[R, H] of `forward`'s rows -> [R, V] float32, which every slice of a part asks for and
        gets."""
        assert self.head is not None
        with torch.inference_mode():
            scores = self.head(hidden).float()
            cap = self.config.logit_softcap
            if cap:
                scores.div_(cap).tanh_().mul_(cap)
            return scores
