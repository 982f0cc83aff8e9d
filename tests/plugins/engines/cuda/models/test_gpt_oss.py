"""gpt-oss: logits and greedy tokens are transformers', however its sinks, windows and heads are;
a sink is a scale of what attention gives without it."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tests.plugins.engines.cuda.driving import engine, job, run  # noqa: E402
from tests.plugins.engines.cuda.models.paged import Paged, reference_ops  # noqa: E402
from tokenwire.core.errors import ConfigError  # noqa: E402
from tokenwire.kernels.attention.cases import paged  # noqa: E402
from tokenwire.kernels.attention.reference import attend, attention  # noqa: E402
from tokenwire.kernels.op import Signature  # noqa: E402
from tokenwire.kernels.ops import Ops  # noqa: E402
from tokenwire.plugins.engines.cuda.layers.dispatch import LocalDispatcher  # noqa: E402
from tokenwire.plugins.engines.cuda.layers.moe import Moe  # noqa: E402
from tokenwire.plugins.engines.cuda.layers.site import Site  # noqa: E402
from tokenwire.plugins.engines.cuda.load import load  # noqa: E402
from tokenwire.plugins.engines.cuda.models.families import parse_config  # noqa: E402

pytestmark = pytest.mark.torch

CLOSE = 1e-4
VOCABULARY = 96
SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "num_local_experts": 6,
    "num_experts_per_tok": 2,
    "sliding_window": 6,
    "max_position_embeddings": 96,
    "initializer_range": 0.3,
    "tie_word_embeddings": False,
    "rope_parameters": {
        "rope_type": "yarn",
        "rope_theta": 1000.0,
        "factor": 8.0,
        "beta_fast": 32.0,
        "beta_slow": 1.0,
        "truncate": False,
        "original_max_position_embeddings": 12,
    },
}
CASES = {
    "as published": {},
    "one head of keys": {"num_key_value_heads": 1, "num_experts_per_tok": 4},
    "as many heads of keys": {"num_key_value_heads": 4, "sliding_window": 1},
    "a window as long as the prompt": {"sliding_window": 31},
    "one expert, a low limit": {"num_experts_per_tok": 1, "swiglu_limit": 0.5, "swiglu_alpha": 1.1},
    "plain rope, no biases, other layers": {
        "rope_parameters": {"rope_type": "default", "rope_theta": 1000.0},
        "attention_bias": False,
        "layer_types": ["full_attention", "full_attention", "sliding_attention"],
    },
}
SINKS = {"small": 0.5, "large": 20.0, "very low": -1e4}
PROMPTS = ([5, 17, 42, 42, 7, 11, 12, 13, 60, 42, 42], [9, 8], list(range(3, 40)))


def make(folder, sinks: float = 0.5, **changes):
    """transformers' network, saved; weights, norms, biases and sinks random."""
    torch.manual_seed(0)
    config = transformers.GptOssConfig(**{**SIZES, **changes})
    config._attn_implementation = "eager"
    network = transformers.GptOssForCausalLM(config).eval()
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            noise = torch.randn_like(parameter)
            if name.endswith("sinks"):
                parameter.copy_(noise + sinks if abs(sinks) > 1 else noise * sinks)
            elif "norm" in name:
                parameter.copy_(1 + noise * 0.3)
            else:
                parameter.copy_(noise * 0.3)
    network.save_pretrained(folder)
    return network


def held_against(network, model) -> None:
    """In chunks, then token by token, two sequences side by side."""
    lengths = 31, 15
    generator = torch.Generator().manual_seed(1)
    sequences = [
        torch.randint(VOCABULARY, (length,), generator=generator).tolist() for length in lengths
    ]
    with torch.no_grad():
        wanted = [network(torch.tensor([each])).logits[0] for each in sequences]
    driven = Paged(model, sequences)
    found: list[list[torch.Tensor]] = [[], []]
    steps = [{0: 5}, {0: 7, 1: 3}, {1: 1, 0: 1}, {0: 11, 1: 1}, {1: 6}, {0: 1, 1: 2}]
    while driven.computed != list(lengths):
        left = {each: 1 for each, size in enumerate(lengths) if driven.computed[each] < size}
        for each, logits in driven.step(steps.pop(0) if steps else left).items():
            found[each].append(logits)
    for ours, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(torch.cat(ours), theirs, atol=CLOSE, rtol=CLOSE)
        assert theirs.argmax(-1).unique().numel() > 5


@pytest.mark.parametrize("case", CASES)
def test_logits_equal_transformers(case: str, tmp_path) -> None:
    network = make(tmp_path, **CASES[case])
    held_against(
        network, load(tmp_path, device="cpu", dtype=torch.float32, ops=reference_ops()).model
    )


@pytest.mark.parametrize("sinks", SINKS)
def test_sinks_of_any_size_by_every_kernel(sinks: str, tmp_path) -> None:
    network = make(tmp_path, SINKS[sinks])
    ops = [reference_ops(), Ops.choose(Signature(head_dim=8), environ={})]
    ops.append(
        Ops.choose(
            Signature(head_dim=8),
            {"attention_decode": "cpu", "attention_prefill": "cpu"},
            environ={},
        )
    )
    for each in ops:
        model = load(tmp_path, device="cpu", dtype=torch.float32, ops=each).model
        model.settle()
        held_against(network, model)


def test_sinks_matter(tmp_path) -> None:
    """Else the tests above would prove nothing of them."""
    ids = list(range(3, 23))
    found = []
    for sinks in SINKS.values():
        make(tmp_path, sinks)
        model = load(tmp_path, device="cpu", dtype=torch.float32, ops=reference_ops()).model
        found.append(Paged(model, [ids]).step({0: len(ids)})[0])
    assert not torch.allclose(found[0], found[1], atol=0.1)
    assert not torch.allclose(found[0], found[2], atol=0.1)


def test_greedy_tokens_through_the_engine_are_transformers(tmp_path) -> None:
    network = make(tmp_path)
    made = engine(tmp_path)
    found = run(made, *(job(str(at), each) for at, each in enumerate(PROMPTS)))
    for at, prompt in enumerate(PROMPTS):
        wanted = network.generate(
            torch.tensor([prompt]),
            attention_mask=torch.ones(1, len(prompt), dtype=torch.int64),
            max_new_tokens=12,
            min_new_tokens=12,
            do_sample=False,
            eos_token_id=None,
            pad_token_id=0,
        )[0, len(prompt) :].tolist()
        assert found[str(at), 0].ids == wanted
        assert len(set(wanted)) > 2


def test_a_sink_is_a_scale_of_what_there_is_without_it() -> None:
    """softmax with one more score s, whose value is none: out * sigmoid(lse - s)."""
    batch = paged([(5, 9), (1, 30), (7, 7)])
    generator = torch.Generator().manual_seed(0)
    blocks = int(batch.block_table.max()) + 1
    k, v = torch.randn(2, blocks, 16, 2, 8, generator=generator)
    q = torch.randn(13, 4, 8, generator=generator)
    sinks = torch.tensor([0.3, -5.0, 4.0, 30.0])
    plain, lse = attend(q, k, v, batch, 8**-0.5)
    found = attention(q, k, v, batch, 8**-0.5, sinks=sinks)
    scaled = plain * torch.sigmoid(lse - sinks)[..., None]
    torch.testing.assert_close(found, scaled, atol=2.4e-7, rtol=0)
    assert float((found - scaled).norm() / plain.norm()) < 1.2e-7


@pytest.mark.parametrize("tokens", [1, 7, 33])
def test_both_formats_add_each_rows_own_bias(tokens) -> None:
    fields = {**SIZES, "architectures": ["GptOssForCausalLM"]}
    config = parse_config(fields)
    assert config.mixture is not None
    ops = reference_ops()
    x = torch.randn(tokens, 32, generator=torch.Generator().manual_seed(tokens))
    found = []
    for yields in ("contiguous", "masked"):
        site = Site(config, ops, torch.device("cpu"), torch.float32)
        made = Moe(
            site, "mlp", config.mixture, LocalDispatcher(ops, config.mixture.experts, yields)
        )
        torch.manual_seed(3)
        for place in site.places.values():
            place.normal_(0, 0.3)
        found.append(made(x, None))
        for name, place in site.places.items():
            if name.endswith("down_proj.bias"):
                place.add_(1)
        found.append(made(x, None) - 1)  # a token's weights are one in all
    for other in found[1:]:
        torch.testing.assert_close(other, found[0], atol=1e-5, rtol=1e-5)


def test_the_published_configuration_is_read() -> None:
    fields = {
        "architectures": ["GptOssForCausalLM"],
        "attention_bias": True,
        "head_dim": 64,
        "hidden_act": "silu",
        "hidden_size": 2880,
        "initial_context_length": 4096,
        "intermediate_size": 2880,
        "max_position_embeddings": 131072,
        "num_attention_heads": 64,
        "num_experts_per_tok": 4,
        "num_hidden_layers": 24,
        "num_key_value_heads": 8,
        "num_local_experts": 32,
        "quantization_config": {
            "modules_to_not_convert": ["model.layers.*.self_attn", "lm_head"],
            "quant_method": "mxfp4",
        },
        "rms_norm_eps": 1e-05,
        "rope_scaling": {
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "factor": 32.0,
            "original_max_position_embeddings": 4096,
            "rope_type": "yarn",
            "truncate": False,
        },
        "rope_theta": 150000,
        "sliding_window": 128,
        "swiglu_limit": 7.0,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "vocab_size": 201088,
        "eos_token_id": 200002,
    }
    config = parse_config(fields)
    assert config.windows == (128, 0) * 12
    assert (config.sinks, config.qkv_bias, config.output_bias) == (True, True, True)
    assert (config.activation, config.gate_alpha, config.gate_limit) == (
        "swiglu_clamped",
        1.702,
        7.0,
    )
    [rope] = config.ropes
    assert (rope.kind, rope.theta, rope.factor, rope.truncate) == ("yarn", 150000.0, 32.0, False)
    assert config.quantisation is not None
    assert config.quantisation.method == "mxfp4"
    assert config.quantisation.skipped == ("model.layers.*.self_attn", "lm_head")
    assert config.mixture is not None
    assert (config.mixture.experts, config.mixture.top_k) == (32, 4)
    with pytest.raises(ConfigError, match="quant_method 'mxfp4'; got 'fp8'"):
        parse_config({**fields, "quantization_config": {"quant_method": "fp8"}})
    with pytest.raises(ConfigError, match="wanted no quantisation, or quant_method 'fp8'"):
        parse_config({**fields, "architectures": ["LlamaForCausalLM"]})
