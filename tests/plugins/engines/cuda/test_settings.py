"""What the node's keys may be together: every refusal, with the words that say what to change."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tokenwire.core.errors import ConfigError
from tokenwire.core.settings import Place, convert
from tokenwire.plugins.engines.cuda.policy.limits import GroupSpec
from tokenwire.plugins.engines.cuda.settings import CudaSettings

pytest.importorskip("torch")

from tokenwire.plugins.engines.cuda.models.config import ModelConfig
from tokenwire.plugins.engines.cuda.sizes import (
    GIB,
    Shape,
    check_room,
    group_blocks,
    kv_token_bytes,
    limits,
    shape,
    shortened,
)

pytestmark = pytest.mark.torch


def made(**fields: object) -> CudaSettings:
    return convert(CudaSettings, fields, Place("node.yaml", "engine"))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"block_size": 12}, "block_size: wanted a power of two, got 12"),
        (
            {"max_batch_tokens": 4, "max_batch_size": 8},
            "max_batch_tokens is 4 and max_batch_size 8: wanted at least one token a sequence; "
            "raise the first or lower the second",
        ),
        (
            {"max_batch_tokens": 3, "speculation": {"tokens": 4}},
            "max_batch_tokens is 3: drafts of 4 tokens need 5",
        ),
        ({"speculation": {"shortest": 5, "longest": 3}}, "shortest is 5, longest 3"),
        ({"speculation": {"tokens": 0}}, "speculation"),
        ({"max_batch_size": 0}, "max_batch_size"),
        ({"max_batch_tokens": -1}, "max_batch_tokens"),
        ({"max_waiting": -1}, "max_waiting"),
        ({"max_model_len": 0}, "max_model_len"),
        ({"gpu_memory_fraction": 0}, "gpu_memory_fraction"),
        ({"gpu_memory_fraction": 1.01}, "gpu_memory_fraction"),
        ({"kv_gib": 0}, "kv_gib"),
        ({"dtype": "int4"}, "dtype"),
        ({"kv_dtype": "fp4"}, "kv_dtype"),
        ({"objective": "speed"}, "objective"),
        ({"grammar": "outlines"}, "grammar"),
        ({"parallel_strategy": "PP_2"}, "parallel_strategy: layout 'PP_2': wanted TP_n, DEP_m"),
        ({"parallel_strategy": "TP_0"}, "layout 'TP_0': wanted whole numbers from 1"),
        ({"parallel_strategy": "TP_2 x DEP_0"}, "layout 'TP_2 x DEP_0': wanted whole numbers"),
        ({"instance_count": 0}, "instance_count"),
        ({"node": 1}, "node and rendezvous are of several machines: set nodes"),
        (
            {"parallel_strategy": "TP_4", "nodes": 2, "instance_count": 2},
            "instance_count is 2 and nodes 2: wanted one group over several machines",
        ),
        (
            {"parallel_strategy": "TP_3", "nodes": 2},
            "parallel_strategy TP_3 has 3 devices and nodes is 2: wanted as many devices on each",
        ),
        ({"parallel_strategy": "TP_4", "nodes": 2, "node": 2}, "node is 2: wanted 0 to 1"),
        ({"parallel_strategy": "TP_4", "nodes": 2}, "rendezvous is not set: wanted HOST:PORT"),
        (
            {"parallel_strategy": "TP_4", "nodes": 2, "rendezvous": "a:b"},
            "rendezvous is a:b: wanted HOST:PORT",
        ),
        ({"node_role": "prefill"}, "node_role"),
        ({"max_batchsize": 2}, "max_batchsize"),
    ],
)
def test_settings_that_cannot_be_are_refused(fields: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        made(**fields)
    assert words in str(refused.value)


@pytest.fixture(scope="module")
def config() -> ModelConfig:
    from tests.plugins.engines.reference.tiny import tiny_llama
    from tokenwire.plugins.engines.cuda.load import load_config

    return load_config(tiny_llama())


def test_defaults_depend_on_the_device(config: ModelConfig) -> None:
    assert shape(made(), config, None, is_cpu=True) == Shape(64, 512, 512, is_len_given=False)
    assert shape(made(), config, None, is_cpu=False) == Shape(256, 8192, 512, is_len_given=False)
    many = shape(made(max_batch_size=2000), config, None, is_cpu=True)
    assert many.max_batch_tokens == 2000, "the default holds a token a sequence"


def test_the_deployments_context_counts_where_the_engine_says_nothing(config: ModelConfig) -> None:
    assert shape(made(), config, 100, is_cpu=True) == Shape(64, 512, 100, is_len_given=True)
    own = shape(made(max_model_len=50), config, 100, is_cpu=True)
    assert own.max_model_len == 50


def test_more_context_than_the_model_was_made_for_is_refused(config: ModelConfig) -> None:
    words = "max_model_len is 513, the model was made for 512: lower it"
    with pytest.raises(ConfigError, match=words):
        shape(made(max_model_len=513), config, None, is_cpu=True)


def test_more_sequences_than_the_default_step_holds_are_refused_in_words(
    config: ModelConfig,
) -> None:
    with pytest.raises(ConfigError, match="max_batch_tokens is 10 and max_batch_size 64: wanted"):
        shape(made(max_batch_tokens=10), config, None, is_cpu=True)


def test_no_room_for_kv_names_what_takes_it() -> None:
    chosen = made(gpu_memory_fraction=0.5)
    check_room(chosen, 1, {"weights": 10 * GIB})
    words = (
        r"gpu_memory_fraction 0\.5 lacks 2\.00 GiB for weights \(10\.00 GiB\) and workspace "
        r"\(1\.50 GiB\), and leaves nothing for KV: raise it, lower max_batch_tokens, or end"
    )
    with pytest.raises(ConfigError, match=words):
        check_room(chosen, -2 * GIB, {"weights": 10 * GIB, "workspace": GIB * 3 // 2})


def test_a_length_that_was_asked_for_and_does_not_fit_is_refused() -> None:
    asked = Shape(4, 64, 100, is_len_given=True)
    specs = (GroupSpec(blocks=6, window=0),)
    words = (
        r"one sequence of max_model_len 100 needs more KV blocks than 0\.50 GiB hold \(5 of 16 "
        r"tokens\): lower max_model_len, or raise kv_gib or gpu_memory_fraction"
    )
    with pytest.raises(ConfigError, match=words):
        shortened(asked, specs, 16, GIB // 2)
    found = shortened(replace(asked, is_len_given=False), specs, 16, GIB // 2)
    assert 16 <= found.max_model_len <= 80
    with pytest.raises(ConfigError, match="hold"):
        shortened(replace(asked, is_len_given=False), (GroupSpec(blocks=1, window=0),), 16, 0)


@settings(max_examples=60, deadline=None)
@given(
    memory=st.integers(0, 1 << 22),
    block_size=st.sampled_from((1, 4, 16, 64)),
    size=st.integers(1, 40),
    length=st.integers(1, 512),
)
def test_blocks_never_take_more_than_there_is(
    config: ModelConfig, memory: int, block_size: int, size: int, length: int
) -> None:
    found = Shape(size, max(64, size), length, is_len_given=False)
    specs = group_blocks(found, config, block_size, 4, memory)
    each = [kv_token_bytes(config, group, 4) * block_size for group in config.groups]
    taken = sum((spec.blocks - 1) * one for spec, one in zip(specs, each, strict=True))
    assert taken <= memory
    assert memory - taken < sum(each), "a block more of each group would have had room"


def test_the_schedulers_limits_are_the_settings(config: ModelConfig) -> None:
    chosen = made(max_batch_size=3, max_batch_tokens=30, long_prefill_tokens=7)
    found = limits(shape(chosen, config, None, is_cpu=True), chosen)
    assert (found.max_batch_size, found.max_batch_tokens) == (3, 30)
    assert found.long_prefill_tokens == 7
    assert (found.block_size, found.max_model_len) == (16, 512)
