"""Bytes and operations of one kernel, and the least time that they take. Formulas alone: a kernel
knows no model, no layout and no machine.

The least time of a kernel is max(bytes / bandwidth, operations / peak): the roofline (Williams,
Waterman, Patterson, "Roofline", CACM 2009). Bytes are counted once: what is read again comes from
a cache. A multiplication with its addition is two operations. Sizes may be fractions, where they
are means over ranks.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from tokenwire.core.cost.shape import Attention, Gqa, KvDtype, Mla

__all__ = (
    "SCALE",
    "Work",
    "active_experts",
    "decode_attention",
    "dense_gemm",
    "grouped_gemm",
    "kv_bytes",
    "kv_heads_of_rank",
    "prefill_attention_flops",
    "sampler",
    "weights_once",
)

SCALE: Final = 4 / 128
"""Bytes a value of fp8's scales: one float32 for 128 values."""


class Work(Struct, frozen=True):
    """What a kernel moves and computes."""

    bytes: float
    flops: float

    def seconds(self, bandwidth: float, peak: float) -> float:
        """The least time, on a device of that many bytes/s and operations/s."""
        return max(self.bytes / bandwidth, self.flops / peak)

    def times(self, count: float) -> Work:
        return Work(self.bytes * count, self.flops * count)


def kv_heads_of_rank(attention: Gqa, tensor: int) -> float:
    """KV heads that one of `tensor` ranks keeps: one at least, so that some are kept twice."""
    return max(1.0, attention.kv_heads / tensor)


def kv_bytes(attention: Attention, dtype: KvDtype, *, tensor: int = 1) -> float:
    """Bytes of one token's KV, one layer, on one of `tensor` ranks.

    GQA: 2 x heads x dim x b. MLA: the latent and the rotated key, whole on every rank; bf16 2 bytes
    each (1152 for 512 + 64), fp8 the latent in 1 byte with its scales, the key in bf16 (656).
    """
    if isinstance(attention, Gqa):
        size = 2 if dtype == "bf16" else 1
        return 2 * kv_heads_of_rank(attention, tensor) * attention.dim * size
    if dtype == "bf16":
        return (attention.latent + attention.rope) * 2
    return attention.latent * (1 + SCALE) + attention.rope * 2


def decode_attention(
    attention: Attention,
    context: float,
    *,
    dtype: KvDtype = "bf16",
    query: int = 1,
    tensor: int = 1,
) -> Work:
    """One sequence, one layer, one of `tensor` ranks; `query` tokens look at `context` ones.

    GQA: L*2*Hkv*D*b + 2*q*Hq*D*2 bytes, 4*Hq*D*L*q operations. MLA absorbed: the compressed KV is
    key and value at once: L*kv + q*Hq*(2c+r)*2 bytes, 2*Hq*(2c+r)*L*q operations (c latent, r
    rotated). Queries and outputs are bf16.
    """
    heads = attention.heads / tensor
    kv = kv_bytes(attention, dtype, tensor=tensor) * context
    if isinstance(attention, Gqa):
        width = 2 * attention.dim
        return Work(kv + query * heads * width * 2, 2 * heads * width * context * query)
    width = 2 * attention.latent + attention.rope
    return Work(kv + query * heads * width * 2, 2 * heads * width * context * query)


def prefill_attention_flops(
    attention: Attention, new: float, *, past: float = 0, tensor: int = 1
) -> float:
    """Causal, one prompt, one layer, one rank: each of `new` tokens sees `past` and those up to
    itself. 2*Hq*(qk + v dims)*(S*P + S(S+1)/2); MLA is not absorbed here (192 + 128)."""
    pairs = new * past + new * (new + 1) / 2
    if isinstance(attention, Mla):
        width = attention.nope + attention.rope + attention.value
    else:
        width = 2 * attention.dim
    return 2 * attention.heads / tensor * width * pairs


def dense_gemm(
    rows: float,
    outputs: float,
    inputs: float,
    *,
    weight: float = 2,
    activation: float = 2,
    out: float = 2,
) -> Work:
    """[rows, inputs] x [inputs, outputs]: N*K*bw + M*K*ba + M*N*bo bytes, 2*M*N*K operations."""
    moved = outputs * inputs * weight + rows * (inputs * activation + outputs * out)
    return Work(moved, 2 * rows * outputs * inputs)


def weights_once(parameters: float, rows: float, weight: float) -> Work:
    """Dense layers of so many parameters by few rows: of the bytes the weights alone count."""
    return Work(parameters * weight, 2 * parameters * rows)


def active_experts(experts: float, top_k: float, tokens: float) -> float:
    """Experts of which at least one token makes use, expected: E*(1-(1-k/E)^T). Every token picks
    `top_k` different ones, all equally likely."""
    idle: float = (1 - top_k / experts) ** tokens
    return experts * (1 - idle)


def grouped_gemm(
    experts: float,
    top_k: float,
    hidden: float,
    width: float,
    tokens: float,
    *,
    ranks: int = 1,
    weight: float = 2,
    activation: float = 2,
) -> Work:
    """One layer of experts on one of `ranks` that divide them; `tokens` of all ranks together.

    E_hit*3*H*I*bw + rows*(H*ba + 2I*2 + I*ba + H*2) bytes, 6*rows*H*I operations, with
    E_hit = (E/R)*(1-(1-k/E)^T) and rows = T*k/R. Routing is uniform.
    """
    hit = active_experts(experts, top_k, tokens) / ranks
    rows = tokens * top_k / ranks
    row = hidden * activation + 2 * width * 2 + width * activation + hidden * 2
    return Work(hit * 3 * hidden * width * weight + rows * row, 6 * rows * hidden * width)


def sampler(batch: float, vocabulary: float, *, passes: int = 1) -> Work:
    """Passes over float32 logits: B*V*4 bytes each."""
    return Work(batch * vocabulary * 4 * passes, 0)
