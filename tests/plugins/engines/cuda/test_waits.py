"""No launch reads the device back: what a GPU would have to finish first is named by its op.

On a CPU every read is free, so the ops are watched: those that copy to the host, or whose result's
shape depends on values. Kernels and networks run in stand-ins that are exempt: on a GPU they are
others, which `forbid_waits` watches there.
"""

from __future__ import annotations

import dataclasses

import pytest

from tests.plugins.engines.cuda.driving import engine, job, run
from tests.plugins.engines.reference.tiny import tiny_llama
from tokenwire.core.host import lone_services
from tokenwire.core.settings import Place, convert
from tokenwire.core.threaded_engine import ThreadedEngine
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import (
    JobSampling,
    JobStopping,
    LogprobSettings,
    ReasoningBudget,
    TokenJob,
)

torch = pytest.importorskip("torch")

from torch.overrides import TorchFunctionMode  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

pytestmark = pytest.mark.torch

WAITS = {
    "aten::_local_scalar_dense": "a number is read",
    "aten::item": "a number is read",
    "aten::nonzero": "the result's shape depends on values",
    "aten::masked_select": "the result's shape depends on values",
    "aten::unique_consecutive": "the result's shape depends on values",
    "aten::_unique2": "the result's shape depends on values",
    "aten::equal": "a truth is read",
    "aten::is_nonzero": "a truth is read",
    "aten::repeat_interleave.Tensor": "the result's shape depends on values",
}
INDEXING = ("aten::index", "aten::index_put", "aten::_index_put_impl")


class NoWait(TorchDispatchMode):
    """Raises where an op would wait; not inside of `exempt`."""

    def __init__(self) -> None:
        super().__init__()
        self.depth = 0
        self.seen = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen += 1
        if not self.depth:
            name = func.name()
            why = WAITS.get(name, "")
            if name.partition(".")[0].rstrip("_") in INDEXING and _has_mask(args[1]):
                why = "a mask of bools is an index"
            if why:
                raise AssertionError(f"{name}: {why}")
        return func(*args, **(kwargs or {}))

    def exempt(self, call):
        def inside(*args, **kwargs):
            self.depth += 1
            try:
                return call(*args, **kwargs)
            finally:
                self.depth -= 1

        return inside


def _has_mask(indices) -> bool:
    return any(each is not None and each.dtype in (torch.bool, torch.uint8) for each in indices)


READS = {"cpu", "numpy", "tolist", "item", "__array__", "__bool__", "__int__", "__float__"}


class NoRead(TorchFunctionMode):
    """Raises where a tensor is read by a call that a CPU serves without an op."""

    def __init__(self, mode: NoWait) -> None:
        super().__init__()
        self.mode = mode

    def __torch_function__(self, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", "")
        if name in READS and not self.mode.depth:
            raise AssertionError(f"{name}: the tensor is read")
        return func(*args, **(kwargs or {}))


def watched(**fields):
    """An engine whose launches run under the modes, its kernels exempt; and the mode."""
    from tokenwire.plugins.engines.cuda import preflight
    from tokenwire.plugins.engines.cuda.build import assemble, choose_ops
    from tokenwire.plugins.engines.cuda.load import load, load_config
    from tokenwire.plugins.engines.cuda.settings import CudaSettings
    from tokenwire.plugins.engines.cuda.sizes import shape

    base = {"device": "cpu", "max_batch_size": 8, "kv_gib": 0.002, "block_size": 4}
    settings = convert(CudaSettings, base | fields, Place("test", "engine"))
    path, mode = tiny_llama(), NoWait()
    config = load_config(path)
    chosen = choose_ops(settings, config, "cpu", torch.float32, preflight.look("cpu"))
    names = [field.name for field in dataclasses.fields(chosen) if field.name != "choices"]
    ops = dataclasses.replace(
        chosen, **{name: mode.exempt(getattr(chosen, name)) for name in names}
    )
    loaded = load(path, device="cpu", dtype=torch.float32, ops=ops)
    built = assemble(settings, lone_services(), loaded, shape(settings, config, None, is_cpu=True))
    made = ThreadedEngine(built.worker, built.card, built.slots, "cuda")
    runner = made._worker._runner
    launch = runner.launch

    def under(*args, **kwargs):
        with NoRead(mode), mode:
            return launch(*args, **kwargs)

    runner.launch = under
    return made, mode


PROMPT = [5, 17, 99, 42, 42, 7, 11, 12, 13, 99, 42, 42, 7]
KINDS: dict[str, tuple[list[TokenJob], dict]] = {
    "decode": ([job("a", [5]), job("b", [9])], {}),
    "mixed": ([job("a", PROMPT), job("b", [9])], {"long_prefill_tokens": 3}),
    "drafted": (
        [job("a", PROMPT)],
        {"speculation": {"tokens": 3, "longest": 3, "shortest": 1}},
    ),
    "padded": ([job("a", PROMPT), job("b", [9])], {"graphs": True}),
    "sampled": (
        [job("a", PROMPT, n=2, sampling=JobSampling(0.8, 0.9, 20, 0.05, seed=3))],
        {},
    ),
    "biased": (
        [job("a", PROMPT, sampling=JobSampling(0.0, logit_bias={5: 3.0, 6: -100.0}))],
        {},
    ),
    "penalised": (
        [job("a", PROMPT, sampling=JobSampling(0.0, 1.0, 0, 0.0, 0.5, 0.5, 1.2))],
        {},
    ),
    "constrained": (
        [
            job(
                "a",
                PROMPT,
                sampling=JobSampling(0.0, allowed_ids=TokenIds((4, 5, 6))),
                stopping=JobStopping(8, min_tokens=4),
            )
        ],
        {},
    ),
    "forced": (
        [
            job(
                "a",
                PROMPT,
                reasoning=ReasoningBudget(
                    True, TokenIds((150,)), TokenIds((151,)), 3, "force", TokenIds((152, 151))
                ),
            )
        ],
        {},
    ),
    "logprobs": ([job("a", PROMPT, logprobs=LogprobSettings(3, TokenIds((7, 8)), 2))], {}),
    "sampled logprobs": (
        [
            job(
                "a",
                PROMPT,
                sampling=JobSampling(0.8, 0.9, 20, seed=3),
                logprobs=LogprobSettings(3, TokenIds((7,)), None, "sampled"),
            )
        ],
        {},
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_launch_waits_for_nothing(kind: str) -> None:
    jobs, fields = KINDS[kind]
    expected = {key: list(answer.ids) for key, answer in run(engine(**fields), *jobs).items()}
    made, mode = watched(**fields)
    found = run(made, *jobs)
    for key, answer in found.items():
        assert answer.finish.kind.name != "ERROR", answer.finish
        assert list(answer.ids) == expected[key]
    assert mode.seen > 100


@pytest.mark.parametrize(
    "act",
    [
        lambda x: x[x > 0],
        lambda x: x.sum().item(),
        lambda x: bool(x.any()),
        lambda x: x.nonzero(),
        lambda x: x.masked_select(x > 0),
        lambda x: x.index_put_((x > 0,), torch.zeros(())),
        lambda x: torch.equal(x, x),
        lambda x: torch.unique(x),
        lambda x: torch.repeat_interleave(x, torch.ones(4, dtype=torch.int64)),
        lambda x: [int(each) for each in x],
        lambda x: x.tolist(),
        lambda x: x.cpu(),
        lambda x: x.numpy(),
    ],
)
def test_the_guard_sees_a_wait(act) -> None:
    mode = NoWait()
    with pytest.raises(AssertionError), NoRead(mode), mode:
        act(torch.ones(4))


def test_a_wait_in_a_launch_fails_the_test() -> None:
    made, _ = watched()
    model = made._worker._runner.passes.model
    forward = type(model).forward

    class Waiting:
        def __getattr__(self, name):
            return getattr(model, name)

        def forward(self, batch, caches):
            int(batch.ids.max())
            return forward(model, batch, caches)

    made._worker._runner.passes.model = Waiting()
    found = run(made, job("a", PROMPT))
    assert found["a", 0].finish.message == "AssertionError in a step"
