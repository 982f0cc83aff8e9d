"""DeepSeek-V2 and V3, and what is built like V3 (R1, Kimi-K2, Moonlight): latent attention, and
experts that are routed by groups beside one that all tokens take. Knows no torch.

arXiv:2405.04434 and arXiv:2412.19437.
"""

from __future__ import annotations

import math

from msgspec.structs import replace

from tokenwire.core.errors import ConfigError
from tokenwire.plugins.engines.cuda.models.common import mixture, read_rope, sizes
from tokenwire.plugins.engines.cuda.models.config import Mixture, Mla, ModelConfig
from tokenwire.plugins.engines.cuda.models.document import Document
from tokenwire.plugins.engines.cuda.models.family import Family

__all__ = ("DEEPSEEK_V2", "DEEPSEEK_V3")


def read_v2(document: Document) -> ModelConfig:
    return _read(document, "deepseek_v2", _routed_v2(document))


def read_v3(document: Document) -> ModelConfig:
    return _read(document, "deepseek_v3", _routed_v3(document))


def _read(document: Document, family: str, routed: Mixture | None) -> ModelConfig:
    found = sizes(document)
    mla = Mla(
        q_rank=document.size("q_lora_rank", 0, least=0),
        kv_rank=document.size("kv_lora_rank"),
        nope_dim=document.size("qk_nope_head_dim"),
        rope_dim=document.size("qk_rope_head_dim"),
        value_dim=document.size("v_head_dim"),
        interleaved=document.get("rope_interleave", bool, True),
    )
    width = mla.nope_dim + mla.rope_dim
    found |= {
        "kv_heads": 1,
        "head_dim": width,
        "ropes": (read_rope(document, mla.rope_dim),),
        "attention_scale": width**-0.5 * _mscale(document) ** 2,
    }
    bias = document.get("attention_bias", bool, False)
    return ModelConfig(
        family=family,
        **found,
        qkv_bias=bias,
        output_bias=bias,
        mlp_bias=document.get("mlp_bias", bool, False),
        mixture=routed,
        mla=mla,
        later_layers=document.size("num_nextn_predict_layers", 0, least=0),
    )


def _mscale(document: Document) -> float:
    """By which q and k grow each, where a stretched rope has `mscale_all_dim` a: 0.1 a ln(s) + 1.

    The tables of cosines have the ratio of the two mscales in them, which is another thing."""
    found = document.inner("rope_parameters") or document.inner("rope_scaling")
    if found is None or found.get("rope_type", str, found.get("type", str, "default")) == "default":
        return 1.0
    by, factor = found.get("mscale_all_dim", float, 0.0), found.get("factor", float, 1.0)
    return 0.1 * by * math.log(factor) + 1.0 if factor > 1 else 1.0


def _routed_v2(document: Document) -> Mixture | None:
    """Experts by softmax; by group_limited_greedy a group is as good as its best."""
    method = _one_of(document, "topk_method", "greedy", "group_limited_greedy")
    _one_of(document, "scoring_func", "softmax")
    # Why one or the other: so the published checkpoints' own code has it.
    renormalise = document.get("norm_topk_prob", bool, False)
    scale = 1.0 if renormalise else document.get("routed_scaling_factor", float, 1.0)
    routed = _routed(document, renormalise=renormalise)
    if routed is None or method == "greedy":
        return None if routed is None else replace(routed, scale=scale)
    return replace(_grouped(document, routed), group_top=1, scale=scale)


def _routed_v3(document: Document) -> Mixture | None:
    """Experts by sigmoid, ranked with a bias; a group is as good as the sum of its best two."""
    _one_of(document, "topk_method", "noaux_tc")
    _one_of(document, "scoring_func", "sigmoid")
    routed = _routed(document, renormalise=document.get("norm_topk_prob", bool, True))
    if routed is None:
        return None
    return replace(
        _grouped(document, routed),
        scoring="sigmoid",
        bias=True,
        scale=document.get("routed_scaling_factor", float, 2.5),
    )


def _routed(document: Document, *, renormalise: bool) -> Mixture | None:
    """None where no layer has experts: they have them from `first_k_dense_replace` on, every
    `moe_layer_freq`-th layer."""
    first = document.size("first_k_dense_replace", 0, least=0)
    every = document.size("moe_layer_freq", 1)
    layers = tuple(
        layer
        for layer in range(first, document.need("num_hidden_layers", int))
        if layer % every == 0
    )
    if not document.has("n_routed_experts"):
        return None
    inner = document.size("moe_intermediate_size")
    found = mixture(document, layers, inner, renormalise=renormalise)
    shared = inner * document.size("n_shared_experts", 0, least=0)
    return None if found is None else replace(found, shared=shared)


def _grouped(document: Document, routed: Mixture) -> Mixture:
    groups = document.get("n_group", int, 1)
    kept = document.get("topk_group", int, 1)
    fits = groups >= 1 and routed.experts % groups == 0 and 1 <= kept <= groups
    if not fits or kept * (routed.experts // groups) < routed.top_k:
        raise ConfigError(
            f"{document.where}: n_group and topk_group: wanted equal groups of n_routed_experts "
            f"({routed.experts}), of which enough are kept for num_experts_per_tok "
            f"({routed.top_k}); got {groups} and {kept}"
        )
    return replace(routed, groups=groups, groups_kept=kept)


def _one_of(document: Document, name: str, default: str, *others: str) -> str:
    found = document.get(name, str, default)
    if found not in (default, *others):
        wanted = " or ".join(repr(each) for each in (default, *others))
        raise ConfigError(
            f"{document.where}: {name}: wanted {wanted}, got {found!r}: this engine routes no "
            "tokens so"
        )
    return found


DEEPSEEK_V2 = Family("deepseek_v2", ("DeepseekV2ForCausalLM", "DeepseekV2Model"), read_v2)
DEEPSEEK_V3 = Family("deepseek_v3", ("DeepseekV3ForCausalLM", "DeepseekV3Model"), read_v3)
