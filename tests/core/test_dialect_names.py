"""Which dialect a name or a checkpoint means."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.shared_files import shared
from tokenwire.core.dialect_names import ALIASES, Signs, model_types, pick
from tokenwire.core.host import Host, lone_services
from tokenwire.core.ports.dialect import Dialect

FORMATS = (
    "plain", "hermes", "think", "qwen3_coder", "hermes+think", "kimi", "llama3_json",
    "sentencepiece", "json_array", "harmony",
)  # fmt: skip
"""What the codec cases call their formats."""

PICKS = {
    "Apertus-8B-Instruct": "apertus",
    "Apriel-1.6-15b-Thinker-fixed": "apriel",
    "Bielik-11B-v3.0-Instruct": "hermes",
    "ByteDance-Seed-OSS": "seed_oss",
    "Cohere2MoE": "cohere",
    "CohereForAI-c4ai-command-r-plus-tool_use": "command_r",
    "CohereForAI-c4ai-command-r7b-12-2024-tool_use": "cohere",
    "GLM-4.6": "glm",
    "GLM-4.7-Flash": "glm",
    "GigaChat3-10B-A1.8B": "gigachat",
    "GigaChat3.1-10B-A1.8B": "gigachat",
    "HuggingFaceTB-SmolLM3-3B": "think",
    "Kimi-K2-Instruct": "kimi",
    "Kimi-K2-Thinking": "kimi",
    "Kimi-K3": "kimi_k3",
    "LFM2-8B-A1B": "lfm2",
    "LFM2.5-8B-A1B": "lfm2",
    "LFM2.5-Instruct": "lfm2",
    "MiMo-VL": "hermes",
    "MiniMax-M1": "minimax_m1",
    "MiniMax-M2": "minimax",
    "MiniMax-M3": "minimax_m3",
    "Mistral-Small-3.2-24B-Instruct-2506": "mistral",
    "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": "qwen3_coder",
    "NVIDIA-Nemotron-Nano-v2": "nemotron_nano_v2",
    "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use": "hermes",
    "NousResearch-Hermes-3-Llama-3.1-8B-tool_use": "hermes",
    "Qwen-QwQ-32B": "hermes",
    "Qwen-Qwen2.5-7B-Instruct": "hermes",
    "Qwen-Qwen3-0.6B": "hermes",
    "Qwen3-Coder": "qwen3_coder",
    "Qwen3.5-4B": "qwen3_coder",
    "Reka-Edge": "hermes",
    "Spark2.5": "spark",
    "StepFun3.5-Flash": "step3p5",
    "deepseek-ai-DeepSeek-R1-Distill-Llama-8B": "deepseek_v3",
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B": "deepseek_v3",
    "deepseek-ai-DeepSeek-V3.1": "deepseek_v31",
    "deepseek-ai-DeepSeek-V3.2": "deepseek_v32",
    "deepseek-ai-DeepSeek-V4": "deepseek_v4",
    "deepseek-ai-DeepSeek-V4-Flash-0731": "deepseek_v4",
    "fireworks-ai-llama-3-firefunction-v2": "firefunction",
    "google-gemma-2-2b-it": "gemma3",
    "google-gemma-4-31B-it": "gemma4",
    "google-gemma-4-31B-it-interleaved": "gemma4",
    "ibm-granite-granite-3.3-2B-Instruct": "granite",
    "ibm-granite-granite-4.0": "hermes",
    "ibm-granite-granite-4.1": "hermes",
    "inclusionai-ling-3.0-flash": "ling3",
    "llama-cpp-deepseek-r1": "deepseek_v3",
    "llama-cpp-rwkv-world": "think",
    "meetkai-functionary-medium-v3.1": "functionary_v3_1",
    "meetkai-functionary-medium-v3.2": "functionary_v3_2",
    "meta-llama-Llama-3.1-8B-Instruct": "llama3_json",
    "meta-llama-Llama-3.2-3B-Instruct": "llama3_json",
    "meta-llama-Llama-3.3-70B-Instruct": "llama3_json",
    "microsoft-Phi-3.5-mini-instruct": "plain",
    "mistralai-Ministral-3-14B-Reasoning-2512": "mistral",
    "mistralai-Mistral-Nemo-Instruct-2407": "mistral_json",
    "moonshotai-Kimi-K2": "kimi",
    "muse-glimmer": "muse",
    "openai-gpt-oss-120b": "harmony",
    "openbmb-MiniCPM5-1B": "minicpm5",
    "poolside-Laguna-S-2.1": "laguna",
    "poolside-Laguna-XS-2.1": "laguna_xs",
    "poolside-Laguna-XS.2": "laguna_xs",
    "tencent-Hy3": "hunyuan",
    "unsloth-Apriel-1.5": "apriel",
    "unsloth-mistral-Devstral-Small-2507": "mistral",
    "upstage-Solar-Open-100B": "solar",
}
"""Template -> dialect. `plain` and `think` are never wrong, only less than there could be."""


@pytest.fixture(scope="module")
def dialects() -> list[Dialect]:
    host = Host()
    return [host.dialects.build(name, {}, lone_services()) for name in host.dialects]


def test_a_configured_name_is_taken_as_it_is_or_as_an_alias() -> None:
    assert pick("plain", Signs("<tool_call>"))[0] == "plain"
    assert pick("qwen2.5")[0] == pick("hermes+think")[0] == "hermes"
    assert pick("sentencepiece")[0] == "plain"
    assert pick("nobody's")[0] == "nobody's"
    assert pick("qwen3", installed=frozenset({"qwen3"}))[0] == "qwen3"


def test_every_alias_and_every_format_of_the_cases_is_an_installed_dialect() -> None:
    names = set(Host().dialects)
    assert set(ALIASES.values()) <= names
    assert {pick(name)[0] for name in FORMATS} <= names


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ('{{ \'<tool_call>\\n{"name": x, "arguments": y}\' }}', "hermes"),
        ('{{ "<tool_call>{\\"name\\": x, \\"arguments\\": y}" }}', "hermes"),
        ("<tool_call><think>", "think"),
        ("<tool_call>", "plain"),
        ("<think>", "think"),
        ("{{ messages }}", "plain"),
        (None, "plain"),
    ],
)
def test_auto_looks_for_a_familys_markers_and_says_why(
    source: str | None, name: str, dialects: list[Dialect]
) -> None:
    found, why = pick("auto", Signs(source), dialects=dialects)
    assert found == name
    assert "template" in why


def test_every_published_template_is_known(dialects: list[Dialect]) -> None:
    folder = shared("templates")
    names = sorted(path.stem for path in folder.glob("*.jinja"))
    assert names == sorted(PICKS)
    found = {}
    for name in names:
        source = (folder / f"{name}.jinja").read_text(encoding="utf-8")
        found[name] = pick("auto", Signs(source), dialects=dialects)[0]
    assert found == PICKS


def test_what_says_more_goes_before_what_says_less() -> None:
    vague = Dialect("vague", "t", "p", template_markers=("<a long vague marker>",), is_vague=True)
    signed = Dialect("signed", "t", "p", sign="the checkpoint says so")
    typed = Dialect("typed", "t", "p", model_types=("mine", "MineForCausalLM"))
    short = Dialect("short", "t", "p", template_markers=("<b>",))
    longer = Dialect("longer", "t", "p", template_markers=("<b>", "<c>"))
    signs = Signs("<a long vague marker><b><c>", frozenset({"mine"}))
    known = [vague, signed, typed, short, longer]
    for best, why in (
        ("longer", "<b> and <c>"),
        ("short", "<b>"),
        ("typed", "mine"),
        ("signed", "says so"),
        ("vague", "no other"),
    ):
        name, said = pick("auto", signs, dialects=known)
        assert name == best
        assert why in said
        known = [dialect for dialect in known if dialect.name != best]
    assert pick("auto", signs)[0] == "plain"


def test_the_model_types_of_a_config() -> None:
    config = {"model_type": "a", "text_config": {"model_type": "b"}, "architectures": ["C", 7]}
    assert model_types(config) == {"a", "b", "C"}
    assert model_types({"architectures": "x", "text_config": None}) == frozenset()


def test_models_without_a_template_are_known_by_their_config(dialects: list[Dialect]) -> None:
    for kind, name in (("gpt_oss", "harmony"), ("deepseek_v4", "deepseek_v4"), ("llama", "plain")):
        assert pick("auto", Signs(None, frozenset({kind})), dialects=dialects)[0] == name


def test_a_second_host_lists_the_same_dialects(dialects: list[Dialect]) -> None:
    host = Host()
    again = [host.dialects.build(name, {}, lone_services()) for name in host.dialects]
    # Why without: a processor of media is an object of its own each time.
    assert [replace(each, media=None) for each in again] == [
        replace(each, media=None) for each in dialects
    ]
    assert [each.media is None for each in again] == [each.media is None for each in dialects]
