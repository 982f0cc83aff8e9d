"""A decoder's sizes and switches, as values. Knows no torch, no file and no family's names."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

__all__ = ("Activation", "KvGroup", "Mixture", "Mla", "ModelConfig", "Quantisation", "Rope")

Activation = Literal["silu", "gelu_tanh", "swiglu_clamped"]


class Rope(Struct, frozen=True):
    """How positions become angles. Names as in checkpoints; `layers/rope.py` has the formulas."""

    dim: int
    """Dimensions of a head that are rotated, from the first."""
    theta: float = 10_000.0
    kind: Literal["default", "linear", "dynamic", "llama3", "yarn"] = "default"
    factor: float = 1.0
    original_context: int = 0
    """Positions that the model was trained on before it was stretched."""
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    attention_factor: float = 1.0
    """Multiplies cosines and sines (yarn)."""
    truncate: bool = True
    divisors: tuple[float, ...] = ()
    """[dim / 2]: each frequency is divided by its own, where a GGUF says so."""


class Quantisation(Struct, frozen=True):
    """Weights of few bits with one scale a block of [rows, columns]."""

    block: tuple[int, int]
    skipped: tuple[str, ...] = ()
    """Modules, by their names in the checkpoint, that are not quantised."""
    method: Literal["fp8", "mxfp4"] = "fp8"
    """fp8: e4m3, scales of any float. mxfp4: e2m1, scales that are powers of two; dequantised
    when it is loaded."""


class Mixture(Struct, frozen=True):
    """Layers whose MLP is many, of which each token takes a few."""

    experts: int
    top_k: int
    """Experts of a token."""
    intermediate: int
    """Of one expert."""
    layers: tuple[int, ...]
    """Those that have experts; the others have one MLP of ModelConfig's `intermediate`."""
    renormalise: bool = True
    """A token's weights are divided by their sum."""
    scoring: Literal["softmax", "sigmoid"] = "softmax"
    """Of the router's logits."""
    bias: bool = False
    """Experts are ranked by score + a bias of their own, which does not weigh (DeepSeek-V3)."""
    groups: int = 1
    """Equal runs of experts, of which `groups_kept` are looked at."""
    groups_kept: int = 1
    group_top: int = 2
    """A group is as good as the sum of so many of its best."""
    scale: float = 1.0
    """Multiplies the weights."""
    shared: int = 0
    """Intermediate size of the MLP that every token takes beside its experts; 0: none."""
    router_bias: bool = False
    expert_bias: bool = False
    """Experts' linear layers have biases (gpt-oss)."""
    stacked: bool = False
    """A checkpoint has all experts of a layer in one tensor (gpt-oss)."""


class Mla(Struct, frozen=True):
    """Multi-head latent attention (DeepSeek-V2, arXiv:2405.04434, 2.1): keys and values of a token
    are made from `kv_rank` numbers, and one rotated key serves all heads."""

    q_rank: int
    """Queries are made from so many numbers; 0: from the hidden state itself."""
    kv_rank: int
    nope_dim: int
    """Of a head's query and key, what is not rotated."""
    rope_dim: int
    value_dim: int
    """Of a head's value."""
    interleaved: bool = True
    """In the checkpoint the two numbers that turn together are neighbours, not half apart."""


class KvGroup(Struct, frozen=True):
    """Layers that look equally far back, and so share block tables."""

    window: int
    """Tokens; 0: all."""
    layers: tuple[int, ...]


class ModelConfig(Struct, frozen=True):
    """Everything that tells one decoder of a family from another."""

    family: str
    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab_size: int
    context_length: int
    rms_eps: float
    ropes: tuple[Rope, ...]
    rope_of_layer: tuple[int, ...]
    """For each layer, its index in `ropes`."""
    windows: tuple[int, ...]
    """For each layer, how many tokens it sees, its own included; 0: all."""
    attention_scale: float
    """Multiplies q @ k."""
    tie: bool = False
    """The head's weight is the embedding's."""
    qkv_bias: bool = False
    output_bias: bool = False
    """Of the attention's last projection."""
    mlp_bias: bool = False
    qk_norm: bool = False
    """q and k of every head are normalised before they are rotated."""
    post_norms: bool = False
    """Attention's and MLP's results are normalised before they join the residual (Gemma)."""
    norm_offset: float = 0.0
    """Added to norms' weights (1 for Gemma)."""
    embed_scale: float = 1.0
    activation: Activation = "silu"
    gate_alpha: float = 1.702
    """Of swiglu_clamped: multiplies the gate within the sigmoid."""
    gate_limit: float = 7.0
    """Of swiglu_clamped: the most that the gate may be, and the size of the other half."""
    attention_softcap: float = 0.0
    """0: none."""
    logit_softcap: float = 0.0
    eos_ids: tuple[int, ...] = ()
    dtype: str = "bfloat16"
    """The checkpoint's."""
    quantisation: Quantisation | None = None
    mixture: Mixture | None = None
    """None: every layer has one MLP."""
    mla: Mla | None = None
    """None: keys and values are kept as they are."""
    sinks: bool = False
    """Every head has a logit that takes part in the softmax and has no value (gpt-oss)."""
    later_layers: int = 0
    """Layers that the checkpoint has after the last, to predict further tokens: not loaded."""

    def kv_widths(self, slices: int = 1) -> tuple[int, int]:
        """Numbers of k and of v that one rank keeps of a token in one layer, where the heads are
        cut so many ways. A head that there are too few of is kept by several; what MLA keeps is
        kept by all."""
        heads, k, v = self.kv_shape(slices)
        return heads * k, heads * v

    def kv_shape(self, slices: int = 1) -> tuple[int, int, int]:
        """(heads, numbers of k a head, of v): how those of `kv_widths` lie in a cache."""
        if self.mla is not None:
            return 1, self.mla.kv_rank + self.mla.rope_dim, 0
        return max(self.kv_heads // slices, 1), self.head_dim, self.head_dim

    @property
    def groups(self) -> tuple[KvGroup, ...]:
        """Full attention first, where a layer has it; then windows, the widest first."""
        found = sorted(set(self.windows), key=lambda window: (window != 0, -window))
        return tuple(
            KvGroup(window, tuple(layer for layer, its in enumerate(self.windows) if its == window))
            for window in found
        )

    @property
    def group_of_layer(self) -> tuple[int, ...]:
        order = [group.window for group in self.groups]
        return tuple(order.index(window) for window in self.windows)
