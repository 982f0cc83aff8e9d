"""Driver, torch, GPU and built kernels compared before anything is loaded: each sentence."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from msgspec.structs import replace

from tokenwire.core.errors import ConfigError
from tokenwire.plugins.engines.cuda.preflight import Machine, check, look, pick_device, take_built

pytestmark = pytest.mark.torch

H100 = Machine(
    "2.13.0",
    "13.0",
    has_gpu=True,
    gpu="NVIDIA H100",
    capability=(9, 0),
    torch_archs=("sm_80", "sm_90", "sm_100a", "compute_120"),
    has_driver=True,
)
BLIND = replace(H100, has_gpu=False, gpu="", capability=None, torch_archs=())


@pytest.mark.parametrize(
    ("device", "machine", "words"),
    [
        ("tpu", H100, r"device 'tpu': wanted auto, cpu, cuda or cuda:N"),
        (
            "cuda",
            replace(BLIND, torch_cuda=None),
            r"device 'cuda', but torch 2\.13\.0 is a build for CPUs: install a build of torch for",
        ),
        (
            "cuda",
            BLIND,
            r"the driver is older than torch 2\.13\.0 \(CUDA 13\.0\) needs: update the driver, or "
            r"install a torch for an older CUDA",
        ),
        (
            "cuda:1",
            replace(BLIND, has_driver=False),
            r"device 'cuda:1', but there is no NVIDIA driver: install one, or set device to cpu",
        ),
        (
            "cuda:7",
            replace(H100, capability=None),
            r"there is no device 'cuda:7': name one that there is",
        ),
        (
            "cuda",
            replace(H100, gpu="Tesla V100", capability=(7, 0)),
            r"Tesla V100 has compute capability 7\.0, the kernels need 8\.0: use a newer GPU, or",
        ),
        (
            "cuda",
            replace(H100, gpu="NVIDIA X", capability=(12, 0), torch_archs=("sm_80", "sm_90")),
            r"torch 2\.13\.0 was built for sm_80, sm_90, and NVIDIA X is sm_120: install a newer",
        ),
    ],
)
def test_each_mismatch_has_its_sentence(device: str, machine: Machine, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as refused:
        check(device, machine)
    assert str(refused.value).count("engine cuda:") == 1
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("device", ["cuda", "cuda:0", "cpu"])
def test_what_goes_together_passes(device: str) -> None:
    check(device, H100)


@pytest.mark.parametrize("capability", [(8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (10, 3)])
def test_every_gpu_from_ampere_on_passes(capability: tuple[int, int]) -> None:
    check("cuda", replace(H100, capability=capability))


def test_a_cpu_needs_no_driver() -> None:
    check("cpu", replace(BLIND, torch_cuda=None, has_driver=False))
    assert pick_device("auto", BLIND) == "cpu"
    assert pick_device("auto", H100) == "cuda"
    assert pick_device("cuda:1", BLIND) == "cuda:1"


def test_this_machine_is_looked_at() -> None:
    pytest.importorskip("torch")
    machine = look("auto")
    assert machine.torch
    check(pick_device("auto", machine), machine)


def test_built_kernels_without_a_gpu_are_told_of(caplog: pytest.LogCaptureFixture) -> None:
    take_built("some/folder", BLIND)
    (line,) = caplog.messages
    assert line == "kernel_lib some/folder is not used: there is no GPU"
    caplog.clear()
    take_built(None, BLIND)
    assert not caplog.messages


@pytest.mark.parametrize("manifest", ["{}", "[]", "no json", None])
def test_broken_built_kernels_warn_and_are_compiled_when_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, manifest: str | None
) -> None:
    pytest.importorskip("triton")
    if manifest is not None:
        (tmp_path / "manifest.json").write_text(manifest)
    take_built(str(tmp_path), H100)
    (line,) = caplog.messages
    assert "kernels are compiled at their first use; `tokenwire kernels build --arch sm_90" in line


def test_kernels_built_for_another_machine_are_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("triton")
    from tokenwire.kernels.aot.artefact import FORMAT, identity

    theirs = {"format": FORMAT, **identity((9, 0)), "architecture": "sm_80", "kernels": []}
    (tmp_path / "manifest.json").write_text(json.dumps(theirs))
    take_built(str(tmp_path), H100)
    (line,) = caplog.messages
    assert "were built for another architecture (sm_80, here sm_90a)" in line
    caplog.clear()
    theirs["architecture"] = identity((9, 0))["architecture"]
    theirs["kernels"] = []
    (tmp_path / "manifest.json").write_text(json.dumps(theirs))
    with caplog.at_level(logging.INFO):
        take_built(str(tmp_path), H100)
    assert not [each for each in caplog.records if each.levelno >= logging.WARNING]
