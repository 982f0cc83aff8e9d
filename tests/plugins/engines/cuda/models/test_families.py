"""Every family's logits equal transformers', in chunks and token by token, over paged KV."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tests.plugins.engines.cuda.models.paged import Paged, reference_ops  # noqa: E402
from tokenwire.plugins.engines.cuda.load import load  # noqa: E402

pytestmark = pytest.mark.torch

CLOSE = 1e-4
VOCABULARY = 160
SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 96,
    # Why so large: small weights make every answer one id repeated.
    "initializer_range": 0.3,
    "tie_word_embeddings": False,
}
GEMMA = {
    **SIZES,
    "head_dim": 8,
    "sliding_window": 6,
    "query_pre_attn_scalar": 24,
    "tie_word_embeddings": True,
    "initializer_range": 0.15,
}
MOE = {
    **SIZES,
    "head_dim": 8,
    "num_experts": 6,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 24,
    "norm_topk_prob": True,
}
MIXTRAL = {**SIZES, "num_local_experts": 4, "num_experts_per_tok": 2}


def rope(kind: str, **values: object) -> dict[str, object]:
    return {"rope_parameters": {"rope_type": kind, "rope_theta": 1000.0, **values}}


CASES = {
    "llama": ("Llama", SIZES),
    "llama tied, biased, own head_dim": (
        "Llama",
        {
            **SIZES,
            "tie_word_embeddings": True,
            "attention_bias": True,
            "mlp_bias": True,
            "head_dim": 12,
        },
    ),
    "llama multi-query": ("Llama", {**SIZES, "num_key_value_heads": 1}),
    "llama linear": ("Llama", {**SIZES, **rope("linear", factor=4.0)}),
    "llama dynamic": ("Llama", {**SIZES, **rope("dynamic", factor=2.0)}),
    "llama3 rope": (
        "Llama",
        {
            **SIZES,
            **rope(
                "llama3",
                factor=8.0,
                low_freq_factor=1.0,
                high_freq_factor=4.0,
                original_max_position_embeddings=32,
            ),
        },
    ),
    "llama yarn": (
        "Llama",
        {**SIZES, **rope("yarn", factor=4.0, original_max_position_embeddings=24)},
    ),
    "mistral": ("Mistral", {**SIZES, "sliding_window": None}),
    "mistral window": ("Mistral", {**SIZES, "sliding_window": 7}),
    "qwen2": ("Qwen2", SIZES),
    "qwen2 windows": (
        "Qwen2",
        {**SIZES, "use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1},
    ),
    "qwen2 yarn": (
        "Qwen2",
        {**SIZES, **rope("yarn", factor=2.0, original_max_position_embeddings=48)},
    ),
    "qwen3": ("Qwen3", {**SIZES, "head_dim": 16}),
    "qwen3 tied, biased": (
        "Qwen3",
        {**SIZES, "head_dim": 8, "tie_word_embeddings": True, "attention_bias": True},
    ),
    "qwen3 moe": ("Qwen3Moe", MOE),
    "qwen3 moe, not renormalised, biased": (
        "Qwen3Moe",
        {**MOE, "norm_topk_prob": False, "attention_bias": True, "num_experts_per_tok": 6},
    ),
    "qwen3 moe, dense layers": ("Qwen3Moe", {**MOE, "mlp_only_layers": [2]}),
    "qwen3 moe, every other layer": ("Qwen3Moe", {**MOE, "decoder_sparse_step": 2}),
    "mixtral": ("Mixtral", MIXTRAL),
    "mixtral window": ("Mixtral", {**MIXTRAL, "sliding_window": 7, "num_experts_per_tok": 1}),
    "gemma3": ("Gemma3", GEMMA),
    "gemma3 softcaps": (
        "Gemma3",
        {**GEMMA, "attn_logit_softcapping": 4.0, "final_logit_softcapping": 3.0},
    ),
    "gemma3 mixed layers, stretched": (
        "Gemma3",
        {
            **GEMMA,
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
            "rope_parameters": {
                "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
                "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
            },
        },
    ),
}


def make(case: str):
    """transformers' network of that case, norms and biases random too."""
    kind, sizes = CASES[case]
    torch.manual_seed(0)
    text = "Text" if kind == "Gemma3" else ""
    config = getattr(transformers, f"{kind}{text}Config")(**sizes)
    # Why eager: another attention would leave out the cap on its scores.
    config._attn_implementation = "eager"
    network = getattr(transformers, f"{kind}ForCausalLM")(config).eval()
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if parameter.dim() == 1:
                parameter.copy_(torch.randn_like(parameter) * 0.3 + float("norm" in name))
    return network


@pytest.mark.parametrize("case", CASES)
def test_logits_equal_transformers(case: str, tmp_path) -> None:
    network = make(case)
    network.save_pretrained(tmp_path)
    model = load(tmp_path, device="cpu", dtype=torch.float32, ops=reference_ops()).model
    lengths = 31, 15
    sequences = [torch.randint(VOCABULARY, (length,)).tolist() for length in lengths]
    with torch.no_grad():
        # Why the argument: transformers' Gemma3 does not read this field of its own config.
        cap = {"softcap": getattr(network.config, "attn_logit_softcapping", None)}
        wanted = [network(torch.tensor([each]), **cap).logits[0] for each in sequences]
    paged = Paged(model, sequences)
    found: list[list[torch.Tensor]] = [[], []]
    steps = [{0: 5}, {0: 7, 1: 3}, {1: 1, 0: 1}, {0: 11, 1: 1}, {1: 6}, {0: 1, 1: 2}]
    for step in steps:
        for each, logits in paged.step(step).items():
            found[each].append(logits)
    while paged.computed != list(lengths):
        left = {each: 1 for each, length in enumerate(lengths) if paged.computed[each] < length}
        for each, logits in paged.step(left).items():
            found[each].append(logits)
    for ours, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(torch.cat(ours), theirs, atol=CLOSE, rtol=CLOSE)
        assert theirs.argmax(-1).unique().numel() > 5
