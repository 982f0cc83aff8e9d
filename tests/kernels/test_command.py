"""`tokenwire kernels`: what it lists, measures, refuses; and the check, which catches mutants."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from tokenwire.kernels.bench import Measurement, Roofline, measured  # noqa: E402
from tokenwire.kernels.cases import Bench, Case, noise  # noqa: E402
from tokenwire.kernels.check import check  # noqa: E402
from tokenwire.kernels.command import main  # noqa: E402
from tokenwire.kernels.grid import benches, cases  # noqa: E402
from tokenwire.kernels.op import Implementation, Op, Signature, Traits  # noqa: E402
from tokenwire.kernels.ops import all_ops  # noqa: E402

ROOT = Path(__file__).parents[2]
SIGNATURE = Signature()


def test_list_names_every_implementation_and_stars_one_an_op(capsys):
    assert main(["list", "--arch", "sm_90"]) == 0
    first, *lines = capsys.readouterr().out.splitlines()
    assert first == "for a GPU of compute capability 9.0, bfloat16:"
    assert len(lines) == sum(len(op.implementations) for op in all_ops())
    starred = [line.split()[1] for line in lines if line.startswith("*")]
    assert starred == [op.name for op in all_ops()]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["list", "--arch", "gpu"], "not 'gpu'"),
        (["list", "--dtype", "bf16"], "'bf16' is no dtype"),
        (["bench", "softmax", "--device", "cpu"], "no op is called 'softmax'"),
    ],
)
def test_wrong_names_are_said(arguments, said, capsys):
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("tokenwire kernels: ")
    assert said in error


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_bench_without_a_gpu_says_so(capsys):
    assert main(["bench"]) == 2
    assert "no GPU is present" in capsys.readouterr().err


def test_bench_on_the_cpu_measures_against_the_copy(monkeypatch):
    from tokenwire.kernels import bench

    monkeypatch.setattr(bench, "COPIED", {"cpu": 1 << 20})
    small = Bench("64", SIGNATURE, lambda device: (torch.ones(64, device=device),), 512)
    monkeypatch.setattr(bench, "benches", lambda ops: [(op_of(torch.neg), (small,))])
    [one] = [each for each in measured(device="cpu") if each.implementation == "reference"]
    assert one.seconds > 0
    assert json.loads(one.as_json())["distance"] == pytest.approx(one.seconds / one.least)


def test_the_roofline_is_the_larger_of_moving_and_computing():
    moving = Bench("m", SIGNATURE, lambda device: (), bytes=100)
    computing = Bench("c", SIGNATURE, lambda device: (), bytes=100, flops=4000)
    eight_bit = Bench("e", SIGNATURE, lambda device: (), bytes=100, flops=4000, fp8=True)
    limits = Roofline(bandwidth=10.0, peak=100.0)
    assert [limits.seconds(one) for one in (moving, computing, eight_bit)] == [10.0, 40.0, 20.0]
    assert Roofline(bandwidth=10.0).seconds(computing) == 10.0
    assert Measurement("op", "one", "m", seconds=15.0, least=10.0).distance == 1.5


@pytest.mark.parametrize("op", all_ops(), ids=lambda op: op.name)
def test_every_op_has_cases_of_distinct_names_and_a_bench(op):
    [(_, every)] = cases([op.name])
    assert every
    assert len({case.name for case in every}) == len(every)
    [(_, measurements)] = benches([op.name])
    assert all(one.bytes > 0 for one in measurements)
    assert measurements


def test_the_variable_that_overrides_is_documented():
    assert "`TOKENWIRE_KERNEL_<OP>`" in (ROOT / "docs" / "configuration.md").read_text()


# --- each law of the check has an implementation that breaks it ---------------------------------


def op_of(function, reference=torch.neg, traits=None):
    return Op(
        "negate",
        (
            Implementation("reference", lambda: reference),
            Implementation("mutant", lambda: function, traits=traits or Traits()),
        ),
    )


def faults(function, **settings):
    traits = settings.pop("traits", None)
    op = op_of(function, settings.pop("reference", torch.neg), traits)
    case = Case("case", SIGNATURE, lambda: (noise(5, 8),), **{"rows": (0,), **settings})
    return check(op, op.implementation("mutant"), case, device="cpu").faults


def unwritten(x):
    y = torch.empty_like(x)
    y[:, :7] = -x[:, :7]
    return y


def in_place(x):
    x.neg_()


def twice_in_place(x):
    x.neg_().mul_(2)


class Drifting:
    """Another last bit at each call."""

    calls = 0

    def __call__(self, x):
        self.calls += 1
        return -x * (1 + 2**-23 * self.calls)


def test_the_right_implementation_breaks_no_law():
    assert faults(torch.neg) == ()
    assert faults(in_place, reference=in_place, written=(0,)) == ()


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda x: -x * 1.01, "from the reference"),
        (unwritten, "from the reference"),
        (lambda x: -x.double(), "other shapes or dtypes"),
        (lambda x: -x[:4], "other shapes or dtypes"),
        (Drifting(), "a second run gave other bits"),
        (lambda x: -x * (1 + 2**-22 * (x[0, 0] > 0)), "depends on the order of the batch"),
    ],
    ids=["far", "unwritten", "dtype", "shape", "drifting", "neighbours"],
)
def test_each_law_catches_its_mutant(function, said):
    found = faults(function)
    assert any(said in fault for fault in found), found


def test_arguments_written_into_are_compared():
    assert any(
        "from the reference" in fault
        for fault in faults(twice_in_place, reference=in_place, written=(0,))
    )


def test_what_is_not_promised_is_not_asked():
    loose = Traits(deterministic=False, batch_invariant=False)
    assert faults(Drifting(), traits=loose) == ()


def test_views_stay_views_and_arguments_stay_as_they_were():
    seen = []

    def look(x):
        seen.append((x.stride(), x.clone()))
        return torch.neg(x)

    op = op_of(look)
    case = Case("view", SIGNATURE, lambda: (noise(5, 9)[:, 1:],), rows=(0,))
    assert check(op, op.implementation("mutant"), case, device="cpu").faults == ()
    assert seen[0][0] == (9, 1)
    assert torch.equal(seen[0][1], noise(5, 9)[:, 1:])
