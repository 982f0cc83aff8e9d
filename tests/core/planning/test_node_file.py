"""The files that a plan writes: an engine node's keys, which the engine's settings take."""

from __future__ import annotations

import pytest
import yaml

from tests.core.planning.test_plan import asked
from tokenwire.core.cost.known_shapes import SHAPES, shape_named
from tokenwire.core.errors import ConfigError
from tokenwire.core.planning.node_file import node_file, prefill_file
from tokenwire.core.planning.plan import make_plan
from tokenwire.core.planning.report import report
from tokenwire.core.planning.summary import summary_of
from tokenwire.core.settings import Place, convert
from tokenwire.plugins.engines.cuda.settings import CudaSettings, Slo


def taken(text: str) -> CudaSettings:
    """As the engine reads it."""
    return convert(CudaSettings, yaml.safe_load(text), Place("node.yaml", ""))


def test_it_has_the_nodes_keys():
    plan = make_plan(asked(nic=12.5e9))
    text = node_file(plan, plan.pick, "/models/v3: odd")
    assert yaml.safe_load(text) == {
        "path": "/models/v3: odd",
        "node_role": "full",
        "parallel_strategy": "DEP_8",
        "instance_count": 8,
        "domain": 8,
        "wide_ep": "refuse",
        "max_batch_size": 126,
        "max_model_len": 5120,
        "gpu_memory_fraction": 0.88,
        "kv_dtype": "fp8",
        "slo": {"user_tokens_per_s": 20, "requests_per_s": 219.5},
    }
    assert "# It wants 7 x DEP_8 of prefill beside it (56 h200)." in text
    assert "a node of role full starts" in text


def test_a_node_of_one_gpu():
    plan = make_plan(asked(shape_named("qwen3-8b"), gpus=1, kv_dtype="bf16"))
    found = yaml.safe_load(node_file(plan, plan.pick, None))
    assert (found["parallel_strategy"], found["instance_count"]) == ("TP_1", 1)
    assert not {"path", "kv_dtype"} & set(found)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
@pytest.mark.parametrize("objective", ["throughput", "user"])
def test_the_engine_takes_it(shape, objective):
    plan = make_plan(asked(shape, objective=objective))
    found = taken(node_file(plan, plan.pick, None))
    assert found.layout == plan.pick.layout
    assert found.layout.gpus * found.instance_count <= 64
    assert found.slo.user_tokens_per_s == pytest.approx(20)


@pytest.mark.parametrize(
    ("model", "precision", "said", "quantisation"),
    [
        ("deepseek-v3", "fp8", "", "auto"),
        (
            "deepseek-v3",
            "bf16",
            "# Weights: Published in fp8 (673.0 GB): with quantisation",
            "none",
        ),
        ("deepseek-v3", "mxfp4", "# Weights: The engine holds them in fp8 (673.0 GB)", "auto"),
        ("gpt-oss-120b", "bf16", "# Weights: Published in mxfp4 (65.2 GB): the engine", "auto"),
        ("gpt-oss-120b", "mxfp4", "(233.6 GB), not in mxfp4: the plan is for another", "auto"),
        ("qwen3-8b", "bf16", "", "auto"),
        ("qwen3-8b", "fp8", "(16.4 GB), not in fp8: the plan is for another engine.", "auto"),
    ],
)
def test_what_the_engine_holds_is_said(model, precision, said, quantisation):
    plan = make_plan(asked(shape_named(model), precision=precision))
    for text in (
        node_file(plan, plan.pick, None),
        prefill_file(plan, plan.pools, None).replace("node_role: prefill", "node_role: full"),
    ):
        assert ("# Weights" in text) == bool(said)
        assert said in text
        assert taken(text).quantisation == quantisation
    lines = list(report(summary_of(plan)))
    note = [line for line in lines if line.startswith(("Published in", "The engine holds"))]
    assert len(note) == bool(said)


def test_the_pool_of_prefill_wants_its_role():
    plan = make_plan(asked(nic=12.5e9))
    text = prefill_file(plan, plan.pools, None)
    assert "this file does not\n# start" in text
    with pytest.raises(ConfigError, match="node_role"):
        taken(text)
    found = taken(text.replace("node_role: prefill", "node_role: full"))
    assert (found.layout, found.instance_count) == (plan.pools.prefill_layout, 7)
    assert found.max_batch_tokens == 8192
    assert found.slo == Slo(requests_per_s=232.0)


def test_a_prompt_longer_than_a_step_is_a_step():
    plan = make_plan(asked(input=20_000))
    assert taken_full(prefill_file(plan, plan.pools, None)).max_batch_tokens == 20_000


def taken_full(text: str) -> CudaSettings:
    return taken(text.replace("node_role: prefill", "node_role: full"))
