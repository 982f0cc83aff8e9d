"""Kernels compiled for GPUs that are not here: gates, the artefact, and that Triton finds it."""

from __future__ import annotations

import json
from importlib import import_module

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton", reason="no Triton for this platform")

import triton.language as tl  # noqa: E402

from tokenwire.kernels.aot import artefact  # noqa: E402
from tokenwire.kernels.aot.arch import arch_name, capability_of, shared_limit, target_of  # noqa: E402
from tokenwire.kernels.aot.build import (  # noqa: E402
    Built,
    build,
    cache_at,
    faults_of,
    triton_modules,
)
from tokenwire.kernels.aot.offline import Compiled, described_gpu, jit_functions  # noqa: E402
from tokenwire.kernels.aot.start import load_built  # noqa: E402
from tokenwire.kernels.command import main  # noqa: E402
from tokenwire.kernels.ops import FOLDERS  # noqa: E402

ARCHITECTURES = {"sm_80": (8, 0), "sm_90a": (9, 0), "sm_100a": (10, 0)}


@pytest.fixture(scope="module", params=ARCHITECTURES.values(), ids=ARCHITECTURES)
def built(request, tmp_path_factory):
    """(capability, the gated kernels), in a cache that stays Triton's for the module's tests."""
    with cache_at(tmp_path_factory.mktemp("cache")):
        yield request.param, list(build(request.param, gated_only=True))


def test_no_kernel_fails_a_gate(built):
    capability, kernels = built
    assert [(one.compiled.name, one.faults) for one in kernels if one.faults] == []
    assert all(0 < one.registers <= 255 for one in kernels)
    made = {one.folder for one in kernels}
    eight_bit = {"fp8_quant", "silu_mul_quant", "fp8_matmul", "fp8_grouped_matmul"}
    if capability >= (8, 9):
        eight_bit = set()
    assert made == set(triton_modules()) - eight_bit


def test_the_product_of_8_bit_floats_uses_the_tensor_cores_of_its_gpu(built):
    capability, kernels = built
    products = [one for one in kernels if one.compiled.name == "fp8_matmul_kernel"]
    assert len(products) == (2 if capability >= (9, 0) else 0)
    for one in products:
        ptx = one.compiled.files()["fp8_matmul_kernel.ptx"].read_text()
        assert {9: "wgmma", 10: "tcgen05"}[capability[0]] in ptx


@pytest.mark.parametrize(("name", "launches"), [("grouped", 4), ("fp8_grouped", 4)])
def test_the_products_of_experts_use_the_tensor_cores_of_their_gpu(built, name, launches):
    capability, kernels = built
    products = [one for one in kernels if one.compiled.name == f"{name}_matmul_kernel"]
    assert len(products) == (launches if name == "grouped" or capability >= (9, 0) else 0)
    for one in products:
        ptx = one.compiled.files()[f"{name}_matmul_kernel.ptx"].read_text()
        assert {8: "mma.sync", 9: "wgmma", 10: "tcgen05"}[capability[0]] in ptx


def test_tensor_cores_read_the_compressed_cache_from_shared_memory(built):
    """Decode on 9.0 alone, where a tile has 64 heads."""
    capability, kernels = built
    found = {
        (one.compiled.name, one.specialisation): one.compiled.files()[f"{one.compiled.name}.ptx"]
        for one in kernels
        if one.folder == "mla"
    }
    if capability[0] == 9:
        ptx = found["mla_decode_kernel", "decode bf16, 128 heads"].read_text()
        assert "wgmma" in ptx
    for kernel in ("mla_expand_kernel", "mla_prefill_kernel"):
        ptx = found[kernel, "prefill bf16, 16 heads"].read_text()
        assert {8: "mma.sync", 9: "wgmma", 10: "tcgen05"}[capability[0]] in ptx


def test_every_op_with_a_triton_kernel_declares_launches():
    for folder in FOLDERS:
        ops = import_module(f"tokenwire.kernels.{folder}").OPS
        has = any(one.name == "triton" for op in ops for one in op.implementations)
        assert has == (folder in triton_modules())
    for folder, module in triton_modules().items():
        names = [one.name for one in module.SPECIALISATIONS]
        assert len(set(names)) == len(names), folder
        assert any(one.gated for one in module.SPECIALISATIONS), folder


# --- the artefact --------------------------------------------------------------------------------

HOPPER = (9, 0)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """An artefact of two ops, and the keys of its kernels."""
    folder = tmp_path_factory.mktemp("artefact") / "sm_90a"
    with cache_at(tmp_path_factory.mktemp("cache")):
        kernels = list(build(HOPPER, folders=("silu_mul", "kv_write")))
        artefact.write(folder, kernels, HOPPER)
    return folder, {one.compiled.key for one in kernels}


def test_a_launch_finds_what_the_artefact_holds_and_compiles_nothing(made, tmp_path):
    folder, keys = made
    with cache_at(tmp_path):
        loaded = artefact.load(folder, HOPPER)
        assert (loaded.kernels, loaded.warnings) == (len(keys), ())
        placed = sorted(path for path in tmp_path.rglob("*") if path.is_file())
        for name in ("silu_mul", "kv_write"):
            module = import_module(f"tokenwire.kernels.{name}.triton")
            for one in module.SPECIALISATIONS:
                with described_gpu(HOPPER, jit_functions(module)) as compiled:
                    one.launch()
                assert {each.key for each in compiled} <= keys
        # A kernel that is compiled leaves its intermediate forms.
        assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == placed


def test_loading_twice_and_beside_a_server_changes_nothing(made, tmp_path):
    folder, keys = made
    with cache_at(tmp_path):
        artefact.load(folder, HOPPER)
        before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.cubin")}
        assert artefact.load(folder, HOPPER).kernels == len(keys)
        assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.cubin")} == before


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("architecture", "sm_80", "another architecture (sm_80, here sm_90a)"),
        ("Triton", "3.5.0", "another Triton (3.5.0, here"),
        ("kernel sources", "0" * 64, "another kernel sources:"),
        ("opt level", "0", "another opt level (0, here 3)"),
        ("format", 0, "another format (0, here 1)"),
    ],
)
def test_another_identity_is_a_warning_that_names_it_and_loads_nothing(
    made, tmp_path, key, value, said
):
    folder, _ = made
    manifest = json.loads((folder / artefact.MANIFEST).read_text())
    changed = tmp_path / "changed"
    changed.mkdir()
    (changed / artefact.MANIFEST).write_text(json.dumps({**manifest, key: value}))
    with cache_at(tmp_path / "cache"):
        loaded = artefact.load(changed, HOPPER)
    assert loaded.kernels == 0
    [warning] = loaded.warnings
    assert said in warning
    assert "tokenwire kernels build --arch sm_90a" in warning


@pytest.mark.parametrize("text", [None, "", "{", "[]", "{}"])
def test_a_missing_or_broken_artefact_is_a_warning(tmp_path, text):
    if text is not None:
        (tmp_path / artefact.MANIFEST).write_text(text)
    loaded = artefact.load(tmp_path, HOPPER)
    assert loaded.kernels == 0
    assert len(loaded.warnings) == 1


def test_an_artefact_that_lost_a_kernel_is_a_warning(made, tmp_path):
    folder, _ = made
    (tmp_path / artefact.MANIFEST).write_text((folder / artefact.MANIFEST).read_text())
    with cache_at(tmp_path / "cache"):
        [warning] = artefact.load(tmp_path, HOPPER).warnings
    assert "is incomplete" in warning


def test_the_command_builds_prints_and_writes(tmp_path, capsys):
    folder = tmp_path / "out"
    arguments = ["build", "--target", "kernel_lib", "--arch", "sm_90", "--opt_level=3"]
    assert main([*arguments, f"--output={folder}", "silu_mul"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("sm_90a, ptxas at level 3\n")
    assert "silu_mul_kernel" in out
    assert json.loads((folder / artefact.MANIFEST).read_text())["architecture"] == "sm_90a"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--arch", "hopper"], "not 'hopper'"),
        (["--arch", "sm_90a", "softmax"], "no op lies in 'softmax'"),
        (["--output", "x"], "--output takes one --arch"),
    ],
)
def test_what_cannot_be_built_is_said(arguments, said, capsys):
    assert main(["build", *arguments]) == 2
    assert said in capsys.readouterr().err


# --- the gates -----------------------------------------------------------------------------------


@triton.jit
def greedy_kernel(x, y, SIZE: tl.constexpr):
    """More than the registers that it is given hold."""
    place = tl.arange(0, SIZE)
    tile = tl.load(x + place[:, None] * SIZE + place[None, :])
    tl.store(y + place[:, None] * SIZE + place[None, :], tl.dot(tile, tile).to(tl.float16))


def test_a_kernel_that_spills_fails_the_gate(tmp_path):
    from tokenwire.kernels.aot import build as building
    from tokenwire.kernels.aot.specialisation import Specialisation, meta

    def launch():
        x = meta(64, 64, dtype=torch.float16)
        greedy_kernel[(1,)](x, x, SIZE=64, num_warps=1, maxnreg=64)

    with cache_at(tmp_path), described_gpu((8, 0), [greedy_kernel]) as compiled:
        launch()
    with cache_at(tmp_path):
        one = building._measured("greedy", Specialisation("one", launch), compiled[0], (8, 0))
    assert one.spilled > 0
    assert one.faults == (f"spills {one.spilled} bytes a thread",)


def test_shared_memory_and_promised_tensor_cores_are_gates():
    big = Compiled("k", "00", shared=228 * 1024, warps=4)
    small = Compiled("k", "00", shared=1024, warps=4)
    assert len(faults_of(big, 0, (9, 0))) == 1
    assert faults_of(small, 0, (9, 0)) == ()
    assert faults_of(small, 0, (9, 0), instruction="wgmma", ptx="mma.sync") == (
        "promises wgmma and has none",
    )
    assert faults_of(small, 0, (9, 0), instruction="wgmma", ptx="wgmma.mma_async") == ()
    assert Built("k", "s", small, 32, 0, ()).faults == ()


def test_names_of_architectures():
    for name, capability in ARCHITECTURES.items():
        assert capability_of(name) == capability
        assert arch_name(capability) == name
    assert capability_of("sm_90") == (9, 0)
    assert shared_limit((9, 0)) == 227 * 1024
    assert shared_limit((8, 9)) < shared_limit((8, 0)) < shared_limit((9, 0))
    with pytest.raises(ValueError, match="not 'sm_9'"):
        capability_of("sm_9")


def test_kernels_are_built_for_what_the_compiler_knows():
    for name, capability in ARCHITECTURES.items():
        assert target_of(name) == capability
    for name in ("sm_75", "sm_99", "sm_999a"):
        with pytest.raises(ValueError, match=f"no kernels can be built for '{name}'"):
            target_of(name)


# --- at an engine's start ------------------------------------------------------------------------


def test_an_engine_loads_what_the_command_wrote(made, tmp_path, monkeypatch):
    folder, keys = made
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with cache_at(tmp_path / "cache"):
        assert load_built(HOPPER) == (0, ())
        assert load_built(HOPPER, folder) == (len(keys), ())
        place = artefact.default_folder(HOPPER)
        place.parent.mkdir(parents=True)
        place.symlink_to(folder)
        assert load_built(HOPPER) == (len(keys), ())
        count, [warning] = load_built(HOPPER, tmp_path / "none")
    assert count == 0
    assert "has no built kernels" in warning
