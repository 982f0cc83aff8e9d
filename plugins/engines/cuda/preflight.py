"""Before a model is loaded: does this driver, this torch, this GPU go together? Loads nothing."""

from __future__ import annotations

import importlib.util
import logging
from pathlib import Path
from typing import Any

from msgspec import Struct

from tokenwire.core.errors import ConfigError

__all__ = ("Machine", "check", "look", "pick_device", "take_built")

LOG = logging.getLogger("tokenwire.engine.cuda")

OLDEST = (8, 0)
"""The oldest compute capability that the kernels are built for."""


class Machine(Struct, frozen=True):
    """What torch and the driver say."""

    torch: str
    torch_cuda: str | None
    """The CUDA version that torch was built with; None: a build for CPUs."""
    has_gpu: bool
    gpu: str = ""
    capability: tuple[int, int] | None = None
    torch_archs: tuple[str, ...] = ()
    """What torch's own kernels were built for, as "sm_90"."""
    has_driver: bool = False


def pick_device(name: str, machine: Machine) -> str:
    """The settings' `device`, with "auto" decided."""
    if name == "auto":
        return "cuda" if machine.has_gpu else "cpu"
    return name


def look(name: str) -> Machine:
    """Raises ConfigError where there is no torch."""
    if importlib.util.find_spec("torch") is None:
        raise ConfigError(
            "engine cuda needs torch: pip install 'tokenwire[cpu]', or with a GPU 'tokenwire[cuda]'"
        )
    import torch

    has_gpu = torch.cuda.is_available()
    if not has_gpu:
        return Machine(
            torch.__version__, torch.version.cuda, has_gpu=False, has_driver=_has_driver()
        )
    place = torch.device("cuda" if name == "auto" else name)
    index: Any = place.index if place.index is not None else 0
    if place.type != "cuda" or index >= torch.cuda.device_count():
        return Machine(torch.__version__, torch.version.cuda, has_gpu=True, has_driver=True)
    return Machine(
        torch.__version__,
        torch.version.cuda,
        has_gpu=True,
        gpu=torch.cuda.get_device_name(index),
        capability=torch.cuda.get_device_capability(index),
        torch_archs=tuple(torch.cuda.get_arch_list()),
        has_driver=True,
    )


def check(device: str, machine: Machine) -> None:
    """Raises ConfigError: one sentence that says which of the parts to change."""
    if not device.startswith("cuda"):
        if device != "cpu":
            raise ConfigError(f"engine cuda: device {device!r}: wanted auto, cpu, cuda or cuda:N")
        return
    if machine.torch_cuda is None:
        raise ConfigError(
            f"engine cuda: device {device!r}, but torch {machine.torch} is a build for CPUs: "
            "install a build of torch for CUDA"
        )
    if not machine.has_gpu:
        what = (
            f"the driver is older than torch {machine.torch} (CUDA {machine.torch_cuda}) needs: "
            "update the driver, or install a torch for an older CUDA"
            if machine.has_driver
            else "there is no NVIDIA driver: install one, or set device to cpu"
        )
        raise ConfigError(f"engine cuda: device {device!r}, but {what}")
    capability = machine.capability
    if capability is None:
        raise ConfigError(f"engine cuda: there is no device {device!r}: name one that there is")
    if capability < OLDEST:
        raise ConfigError(
            f"engine cuda: {machine.gpu} has compute capability {capability[0]}.{capability[1]}, "
            f"the kernels need {OLDEST[0]}.{OLDEST[1]}: use a newer GPU, or set device to cpu"
        )
    archs = [arch for arch in machine.torch_archs if arch.startswith("sm_")]
    newest = max((int(arch.removeprefix("sm_").rstrip("af")) for arch in archs), default=0)
    if archs and capability[0] * 10 > newest + 9:
        raise ConfigError(
            f"engine cuda: torch {machine.torch} was built for {', '.join(archs)}, and "
            f"{machine.gpu} is sm_{capability[0]}{capability[1]}: install a newer torch"
        )


def take_built(folder: str | None, machine: Machine) -> None:
    """Let Triton find kernels that were built ahead of time. Where they do not fit this machine
    one warning says so, and they are compiled when first used."""
    if machine.capability is None:
        if folder is not None:
            LOG.warning("kernel_lib %s is not used: there is no GPU", folder)
        return
    from tokenwire.kernels.aot.start import load_built

    kernels, warnings = load_built(machine.capability, None if folder is None else Path(folder))
    for warning in warnings:
        LOG.warning("%s", warning)
    if kernels:
        LOG.info("%d kernels are compiled already", kernels)


def _has_driver() -> bool:
    """Whether the driver's library is there, whatever torch thinks of it."""
    import ctypes

    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True
